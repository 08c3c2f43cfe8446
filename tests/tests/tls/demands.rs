//! Demands of single sites on their clients.

use afpa_testkit::server::program;
use afpa_tests::tls::{Authority, Plan, TlsServer};

use crate::site;

/// Options of curl by which a client shows a certificate.
fn shown(authority: &Authority, name: &str) -> Vec<String> {
    let files = authority.issue(name, &[name]);
    let [chain, key] = [files.chain, files.key].map(|path| path.display().to_string());
    vec!["--cert".into(), chain, "--key".into(), key]
}

/// Three sites of one address: one for all, one for the staff, and one that would like to know partners.
struct Bed {
    public: Authority,
    staff: Authority,
    partners: Authority,
    server: TlsServer,
    _tree: afpa_testkit::Tree,
}

impl Bed {
    fn new() -> Self {
        let tree = site();
        let (public, staff, partners) = (Authority::new(), Authority::new(), Authority::new());
        let files = public.issue("sites", &["public.test", "staff.test", "partners.test"]);
        let root = format!("root = \"{}\"", tree.path().display());
        let section = files.section();
        let (for_staff, for_partners) = (staff.path(), partners.path());
        let server = TlsServer::written(tree.path(), |plain, tls| {
            let text = format!(
                "{section}[[site]]\nlisten = [\"{plain}\"]\n{root}\n\
                 [[site]]\ntls = [\"{tls}\"]\nhosts = [\"public.test\"]\n{root}\n\
                 [[site]]\ntls = [\"{tls}\"]\nhosts = [\"staff.test\"]\n{root}\n\
                 client_certificates = \"required\"\nclient_authorities = \"{}\"\n\
                 [[site.path]]\nprefix = \"/boss/\"\nstatus = 403\n\
                 [[site.path.content]]\nif_client_subject = \"CN=boss*\"\nstatus = 200\n\
                 [[site]]\ntls = [\"{tls}\"]\nhosts = [\"partners.test\"]\n{root}\n\
                 client_certificates = \"optional\"\nclient_authorities = \"{}\"\n",
                for_staff.display(),
                for_partners.display(),
            );
            (text, Box::new(|_| {}))
        });
        Self { public, staff, partners, server, _tree: tree }
    }

    /// The status of the answer to a client that asks for `name` in its handshake, and for `host` in its request; 0:
    /// there was no handshake.
    fn status(&self, (name, host): (&str, &str), path: &str, shown: &[String]) -> u16 {
        let port = self.server.tls.port();
        let url = format!("https://{name}:{port}{path}");
        let place = format!("{name}:{port}:{}", self.server.tls.ip());
        let host = format!("Host: {host}");
        let mut arguments =
            vec!["--resolve", &place, "-H", &host, "-o", "/dev/null", "-w", "%{http_code}", &url];
        arguments.extend(shown.iter().map(String::as_str));
        let (ended, said) = self.server.curl(&self.public, &arguments);
        let said = String::from_utf8_lossy(&said).into_owned();
        let status = said.get(..3).and_then(|status| status.parse().ok()).unwrap_or(0);
        assert_eq!(ended, status != 0, "{said}");
        status
    }
}

#[test]
fn each_site_gets_the_certificates_that_it_demands_and_no_request_that_has_shown_less() {
    let bed = Bed::new();
    let none: &[String] = &[];
    let worker = shown(&bed.staff, "worker");
    let boss = shown(&bed.staff, "boss");
    let partner = shown(&bed.partners, "boss");
    let of = |name| (name, name);
    for (asked, path, shown, status) in [
        (of("public.test"), "/hello.txt", none, 200),
        (of("public.test"), "/hello.txt", &worker, 200),
        (of("partners.test"), "/hello.txt", none, 200),
        (of("partners.test"), "/hello.txt", &partner, 200),
        (of("partners.test"), "/hello.txt", &worker, 0),
        (of("staff.test"), "/hello.txt", none, 0),
        (of("staff.test"), "/hello.txt", &partner, 0),
        (of("staff.test"), "/hello.txt", &worker, 200),
        (of("staff.test"), "/boss/", &worker, 403),
        (of("staff.test"), "/boss/", &boss, 200),
        // The handshake was for another site than the request.
        (("public.test", "staff.test"), "/hello.txt", none, 421),
        (("public.test", "staff.test"), "/boss/", &boss, 421),
        (("partners.test", "staff.test"), "/hello.txt", &partner, 421),
        (("partners.test", "staff.test"), "/boss/", &partner, 421),
        (("staff.test", "partners.test"), "/hello.txt", &worker, 421),
        (("staff.test", "public.test"), "/hello.txt", &worker, 200),
        // No site has this name: the first site decides about the handshake, and the router about the request.
        (("other.test", "staff.test"), "/hello.txt", none, 0),
    ] {
        let found = bed.status(asked, path, shown);
        assert_eq!(found, status, "{asked:?} {path} {shown:?}");
    }
}

/// A spelling is the site's name, or another name, or none at all; none of them opens what the handshake did not.
#[test]
fn no_spelling_of_a_host_leads_behind_the_demands_of_its_site() {
    let bed = Bed::new();
    for host in [
        "STAFF.test",
        "staff.test.",
        "staff.test:443",
        "staff.test:",
        " staff.test",
        "staff%2Etest",
        "staff.test%00",
        "staff.test/",
        "x@staff.test",
        "staff.test,public.test",
        "staff.test public.test",
        "staff.test..",
        ".staff.test",
        "[staff.test]",
        "staff.test:x",
    ] {
        // Other sites have no such path.
        let found = bed.status(("public.test", host), "/boss/", &[]);
        assert!([400, 404, 421].contains(&found), "{host:?}: {found}");
    }
}

#[test]
fn a_session_of_one_site_opens_no_other() {
    let bed = Bed::new();
    let session = bed.public.folder().join("session").display().to_string();
    let request = |host: &str| {
        format!("GET /hello.txt HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    };
    for version in ["-tls1_2", "-tls1_3"] {
        let first = ["-ign_eof", version, "-servername", "public.test", "-sess_out", &session];
        let said = bed.server.openssl(&bed.public, &first, &request("public.test"));
        assert!(said.contains("200 OK"), "{said}");
        let again = |name: &'static str| {
            let arguments = ["-ign_eof", version, "-servername", name, "-sess_in", &session];
            bed.server.openssl(&bed.public, &arguments, &request("staff.test"))
        };
        let said = again("staff.test");
        assert!(!said.contains("Reused, ") && !said.contains("200 OK"), "{said}");
        let said = again("public.test");
        assert!(said.contains("Reused, ") && said.contains("421 Misdirected"), "{said}");
    }
}

#[test]
fn answers_for_one_client_are_not_kept_for_others() {
    let (tree, authority) = (site(), Authority::new());
    let echo = crate::sites::echo("Cache-Control: max-age=60\r\n");
    let sections = format!(
        "[tls]\nclient_certificates = \"optional\"\nclient_authorities = \"{}\"\n\
         [[server_group]]\nname = \"app\"\nservers = [\"{echo}\"]\n\
         [server_group.request]\nclient_subject = \"X-Client-Subject\"\n",
        authority.path().display(),
    );
    let site = "to = \"app\"\ncached = [\"txt\"]\n[site.cache]\nmode = \"auto\"\n".to_owned();
    let server =
        TlsServer::with(&authority, tree.path(), Plan { sections, site, ..Plan::default() });
    let url = server.url("/page");
    let (one, other) = (shown(&authority, "one"), shown(&authority, "other"));
    let get = |shown: &[String]| {
        let mut arguments = vec![&*url];
        arguments.extend(shown.iter().map(String::as_str));
        String::from_utf8(server.curl(&authority, &arguments).1).expect("text")
    };
    let nobody = get(&[]);
    assert_eq!(get(&[]), nobody, "it is kept for those who are nobody");
    for shown in [&one, &other] {
        let name = &shown[1];
        let said = get(shown);
        let is_one = name.ends_with("/one.pem");
        let subject = if is_one { "CN=one" } else { "CN=other" };
        assert!(said.contains(&format!("X-Client-Subject: {subject}\r\n")), "{said}");
    }
    assert_eq!(get(&[]), nobody);
}

#[test]
fn check_names_what_is_missing_or_without_effect() {
    let (tree, authority) = (site(), Authority::new());
    let files = authority.issue("localhost", &["localhost"]);
    let check = |site: &str| {
        let root = tree.path().display();
        let text = format!(
            "{}[[site]]\nlisten = [\"127.0.0.1:9\"]\ntls = [\"127.0.0.1:10\"]\nroot = \"{root}\"\n{site}",
            files.section()
        );
        let file = authority.folder().join("afpa.toml");
        std::fs::write(&file, text).expect("written");
        let mut afpa = std::process::Command::new(program());
        let output = afpa.arg("check").arg(&file).output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), said)
    };
    let path = authority.path();
    let path = path.display();
    let (right, said) = check("client_certificates = \"required\"\n");
    assert!(!right && said.contains("no authority for these is named"), "{said}");
    let required = format!("client_certificates = \"required\"\nclient_authorities = \"{path}\"\n");
    let (right, said) = check(&required);
    assert!(right && said.contains("clients that come without TLS get in"), "{said}");
    let (right, said) = check(&format!("https_only = true\n{required}"));
    assert!(right && !said.contains("clients that come without TLS get in"), "{said}");
    let early = |more: &str| check(&format!("[tls]\nearly_data = true\n{more}"));
    assert!(early("").0);
    let (right, said) = early("tickets = 0\n");
    assert!(!right && said.contains("early data needs sessions"), "{said}");
    let condition = "[[site.path]]\nprefix = \"/\"\nstatus = 200\nif_client_subject = \"CN=a\"\n";
    let (right, said) = check(condition);
    assert!(!right && said.contains("not asked for a certificate"), "{said}");
    let missing = "client_certificates = \"optional\"\nclient_authorities = \"/nowhere.pem\"\n";
    let (right, said) = check(missing);
    assert!(!right && said.contains("/nowhere.pem: it does not exist"), "{said}");
}
