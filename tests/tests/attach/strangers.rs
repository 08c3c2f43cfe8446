//! A page that the server shows to some clients only never comes from the kernel. The tests have each kind of rule by
//! which a server can choose its clients without saying so in the answer, with and without `afpa attach`.

use std::fmt::Write as _;
use std::path::Path;

use afpa_testkit::{Asked, Client, Response, eventually};
use afpa_tests::attach::{Attached, Kind, Lab, PORT, SECOND};

const RULED: &str = "/ruled/page.html";

fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: 10.77.0.1:{PORT}\r\n{fields}\r\n")
}

fn ask(client: &mut Client, request: &str) -> Response {
    client.send(request);
    let mut response = client.try_receive(Asked::Body).expect("an answer");
    response.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
    response
}

/// A page with a rule, and one without.
fn files(lab: &Lab) {
    lab.file(RULED, "<p>not for everybody</p>");
    lab.file("/open/page.html", "<p>for everybody</p>");
}

/// How often the kernel answers this request, asked a few times, each on a connection of its own.
fn answered(lab: &Lab, attached: &Attached, request: &str) -> u64 {
    let before = attached.answered();
    for _ in 0..3 {
        ask(&mut lab.connect(), request);
    }
    attached.answered() - before
}

/// Every request gets the answer that it gets without us, and pages without rules come from the kernel.
/// Returns how often each request on the ruled page was answered in the kernel.
fn same_with_and_without(lab: &Lab, fields: &[&str]) -> Vec<u64> {
    files(lab);
    let requests: Vec<String> = fields.iter().map(|fields| get(RULED, fields)).collect();
    let without: Vec<_> = requests.iter().map(|request| ask(&mut lab.connect(), request)).collect();
    let attached = lab.attach(&[]);
    for (request, without) in requests.iter().zip(&without) {
        // Apache closes connections after some of its errors.
        for _ in 0..3 {
            assert_eq!(ask(&mut lab.connect(), request), *without, "{request:?}\n{}", lab.log());
        }
    }
    let open = answered(lab, &attached, &get("/open/page.html", fields.first().unwrap_or(&"")));
    assert!(open >= 2, "{open} of the open page: {:#?}", attached.statistics());
    requests.iter().map(|request| answered(lab, &attached, request)).collect()
}

/// The same rule in the words of both servers.
fn rule(kind: Kind, nginx: &str, apache: &str) -> impl Fn(&Path) -> String {
    let text = match kind {
        Kind::Nginx => format!("location /ruled/ {{ {nginx} }}"),
        _ => format!("<Location /ruled/>\n{apache}\n</Location>"),
    };
    move |folder| text.replace("FOLDER", &folder.display().to_string())
}

/// Both of an Apache that accepts at once and of nginx, as a test each.
macro_rules! for_both {
    ($($name:ident($run:ident);)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn nginx() {
                $run(Kind::Nginx);
            }

            #[test]
            fn apache() {
                $run(Kind::Apache);
            }
        }
    )*};
}

for_both! {
    what_this_machine_may_see_is_not_shown_to_others(only_this_machine);
    what_needs_no_password_here_needs_one_elsewhere(satisfy_any);
    a_redirect_to_https_is_not_overruled(redirects_to_https);
    a_page_that_must_not_be_linked_to_is_not(referer);
    the_origin_of_one_client_is_not_told_to_another(origin);
    a_language_without_vary_is_not_given_to_all(language);
    sites_that_differ_by_address_stay_apart(by_address);
    a_maintenance_flag_outside_the_root_counts_soon(maintenance);
}

fn only_this_machine(kind: Kind) {
    let rule =
        rule(kind, "allow 127.0.0.1; allow 10.77.0.1; deny all;", "Require ip 127.0.0.1 10.77.0.1");
    let lab = lab!(kind, rule);
    assert_eq!(same_with_and_without(&lab, &[""]), [0]);
    assert_eq!(ask(&mut lab.connect(), &get(RULED, "")).status, 403);
}

fn satisfy_any(kind: Kind) {
    let rule = rule(
        kind,
        "satisfy any; allow 127.0.0.1; allow 10.77.0.1; deny all; auth_basic x; auth_basic_user_file FOLDER/users;",
        "AuthType Basic\nAuthName x\nAuthUserFile FOLDER/users\n\
         <RequireAny>\nRequire ip 127.0.0.1 10.77.0.1\nRequire valid-user\n</RequireAny>",
    );
    let lab = lab!(kind, rule);
    std::fs::write(lab.folder.path().join("users"), "x:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=\n")
        .expect("written");
    assert_eq!(same_with_and_without(&lab, &["", "Cookie: a=b\r\n"]), [0, 0]);
    assert_eq!(ask(&mut lab.connect(), &get(RULED, "")).status, 401);
}

fn redirects_to_https(kind: Kind) {
    let rule = rule(
        kind,
        "if ($http_x_forwarded_proto = http) { return 301 https://example.org/; }",
        "RewriteEngine on\nRewriteCond %{HTTP:X-Forwarded-Proto} =http\nRewriteRule .* https://example.org/ [R=301,L]",
    );
    let lab = lab!(kind, rule);
    let http = "X-Forwarded-Proto: http\r\n";
    let https = "X-Forwarded-Proto: https\r\nX-Forwarded-For: 192.0.2.1\r\n";
    let answered = same_with_and_without(&lab, &["", http, https, "Cookie: a=b\r\n"]);
    assert!(answered[0] >= 2 && answered[3] >= 2 && answered[1] == 0, "{answered:?}");
}

fn referer(kind: Kind) {
    let rule = rule(
        kind,
        "valid_referers none blocked server_names; if ($invalid_referer) { return 403; }",
        "RewriteEngine on\nRewriteCond %{HTTP_REFERER} .\nRewriteCond %{HTTP_REFERER} !^http://10\\.77\\.0\\.1\nRewriteRule .* - [F]",
    );
    let lab = lab!(kind, rule);
    let fields =
        ["", "Referer: https://elsewhere.example/\r\n", "User-Agent: x\r\nAccept: */*\r\n"];
    let answered = same_with_and_without(&lab, &fields);
    assert!(answered[0] >= 2 && answered[1] == 0 && answered[2] >= 2, "{answered:?}");
}

fn origin(kind: Kind) {
    let rule = rule(
        kind,
        "add_header Access-Control-Allow-Origin $http_origin;",
        "SetEnvIf Origin \"(.+)\" from=$1\nHeader set Access-Control-Allow-Origin %{from}e env=from",
    );
    let lab = lab!(kind, rule);
    let fields = ["", "Origin: https://one.example\r\n", "Origin: https://other.example\r\n"];
    let answered = same_with_and_without(&lab, &fields);
    assert!(answered[0] >= 2 && answered[1..] == [0, 0], "{answered:?}");
}

fn language(kind: Kind) {
    let rule = rule(
        kind,
        "if ($http_accept_language ~ ^de) { return 302 /de/; }",
        "RewriteEngine on\nRewriteCond %{HTTP:Accept-Language} ^de\nRewriteRule .* http://10.77.0.1/de/ [R=302,L]",
    );
    let lab = lab!(kind, rule);
    let fields = ["", "Accept-Language: de\r\n", "Accept-Language: de-AT,de;q=0.5\r\n"];
    let answered = same_with_and_without(&lab, &fields);
    assert!(answered[0] >= 2 && answered[1..] == [0, 0], "{answered:?}");
}

/// One name, another content on another address.
fn by_address(kind: Kind) {
    let inside = |_: &Path| String::new();
    let beside = move |folder: &Path| match kind {
        Kind::Nginx => {
            format!("server {{ listen {SECOND}:{PORT}; root {}/other; }}", folder.display())
        }
        _ => format!(
            "<VirtualHost {SECOND}:{PORT}>\nDocumentRoot {0}/other\n<Directory {0}/other>\nRequire all granted\n\
             </Directory>\n</VirtualHost>",
            folder.display()
        ),
    };
    let lab = lab!(kind, inside, beside);
    files(&lab);
    let other = lab.folder.path().join("other/ruled");
    std::fs::create_dir_all(&other).expect("a folder");
    std::fs::write(other.join("page.html"), "<p>the other site</p>").expect("written");
    std::fs::create_dir_all(lab.folder.path().join("other/open")).expect("a folder");
    std::fs::copy(lab.path("/open/page.html"), lab.folder.path().join("other/open/page.html"))
        .expect("a copy");
    let request = "GET /ruled/page.html HTTP/1.1\r\nHost: www.example.org\r\n\r\n";
    let attached = lab.attach_at(&format!("0.0.0.0:{PORT}"), &["--host", "www.example.org"]);
    for _ in 0..3 {
        let here = ask(&mut lab.connect(), request);
        let there = ask(&mut lab.connect_to(SECOND), request);
        assert_eq!(
            (here.text(), there.text()),
            ("<p>not for everybody</p>", "<p>the other site</p>")
        );
    }
    assert_eq!(
        attached.pinned(),
        0,
        "not even what is alike but for its date: {:?}",
        attached.statistics()
    );
    assert!(lab.detach(&["--wait", "0", "--force"]).0, "nothing is left behind");
}

/// A maintenance page of the server: the kernel gives old answers no longer than `--revalidate` after it begins.
fn maintenance(kind: Kind) {
    let rule = rule(
        kind,
        "if (-f FOLDER/maintenance) { return 503; }",
        "RewriteEngine on\nRewriteCond FOLDER/maintenance -f\nRewriteRule .* - [R=503,L]",
    );
    let lab = lab!(kind, rule);
    files(&lab);
    let attached = lab.attach(&["--revalidate", "1"]);
    assert!(answered(&lab, &attached, &get(RULED, "")) >= 2);
    let flag = lab.folder.path().join("maintenance");
    for _ in 0..2 {
        std::fs::write(&flag, "").expect("written");
        let status = || ask(&mut lab.connect(), &get(RULED, "")).status;
        eventually("the flag counts", || status() == 503);
        assert_eq!(answered(&lab, &attached, &get(RULED, "")), 0);
        let mut open = lab.connect();
        eventually("other pages are answered on", || {
            let before = attached.answered();
            ask(&mut open, &get("/open/page.html", ""));
            attached.answered() > before
        });
        std::fs::remove_file(&flag).expect("removed");
        eventually("the page is answered in the kernel again", || {
            answered(&lab, &attached, &get(RULED, "")) >= 2
        });
    }
}

fn interfaces(lab: &Lab) -> String {
    let output = lab.bed().server().command("ip").args(["-o", "link"]).output().expect("ip runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_stranger_leaves_with_the_attachment_however_it_ends() {
    let lab = lab!(Kind::Nginx, |_: &Path| String::new());
    files(&lab);
    let name = format!("afpa-ask-{PORT}");
    let attached = lab.attach(&[]);
    assert!(interfaces(&lab).contains(&name), "{}", interfaces(&lab));
    attached.kill();
    eventually("its interface is gone", || !interfaces(&lab).contains(&name));
    let attached = lab.attach(&[]);
    assert!(interfaces(&lab).contains(&name));
    let (detached, said) = lab.detach(&["--wait", "0", "--force"]);
    assert!(detached, "{said}");
    assert!(attached.wait());
    eventually("its interface is gone", || !interfaces(&lab).contains(&name));
}

/// Without the right to make a namespace, unless the operator takes the risk.
#[test]
fn without_a_stranger_nothing_is_answered_unless_told_so() {
    let rule = rule(Kind::Nginx, "allow 127.0.0.1; allow 10.77.0.1; deny all;", "");
    let lab = lab!(Kind::Nginx, rule);
    files(&lab);
    let mut command = lab.afpa_without_namespaces();
    let address = Lab::address().to_string();
    let root = lab.path("");
    command.args(["attach", "--listen", &address, "--root"]).arg(&root);
    let output = command.output().expect("run");
    let mut said = String::new();
    write!(said, "{}", String::from_utf8_lossy(&output.stderr)).expect("text");
    assert!(!output.status.success() && said.contains("cannot be asked as a stranger"), "{said}");
    assert!(said.contains("--ask-only-locally"), "{said}");
    let attached = lab.attach(&["--ask-only-locally"]);
    assert_eq!(attached.pinned(), 2, "the risk is the operator's");
    assert!(lab.log().contains("asking from this machine only"), "{}", lab.log());
}
