use super::*;
use afpa_config::{Source, parse_text};

const FILE: &str = r#"
[[server_group]]
name = "app"
servers = ["127.0.0.1:3000"]

[[site]]
listen = ["127.0.0.1:80"]
hosts = ["www.acme.com"]
root = "/srv/acme"
to = "app"
cached = ["html"]

[[site.path]]
prefix = "/catalog/"
root = "/srv/dogalog"

[[site.path.content]]
extensions = ["gif"]

[[site.path.content]]
extensions = ["others"]
if_cookies = { beta = "yes" }
to = "app"
rewrite = "/shop/"

[[site.path]]
prefix = "/old/"
redirect = "https://{host}/new/{rest}{query}"

[site.cache]
bypass_cookies = ["wp_*"]
"#;

fn asked(url: &str, header: &[&str]) -> (String, bool) {
    asked_of(FILE.trim_start(), url, header)
}

fn asked_of(file: &str, url: &str, header: &[&str]) -> (String, bool) {
    let options = Route {
        url: url.to_owned(),
        config: None,
        method: "GET".to_owned(),
        header: header.iter().map(|line| (*line).to_owned()).collect(),
        listen: None,
        client: None,
    };
    let source = Source::new("afpa.toml", file);
    let loaded = parse_text(source, &Overrides::default(), &Machine::probe()).unwrap();
    explained(&loaded, &options).unwrap()
}

#[test]
fn a_cached_url_names_its_file_and_what_was_tried() {
    let (text, found) = asked("http://www.acme.com/catalog/anvils/../jumbo.gif", &[]);
    let expected = "\
address      127.0.0.1:80
site         www.acme.com, by the host www.acme.com (line 5)
path         /catalog/jumbo.gif  (normalised from /catalog/anvils/../jumbo.gif)
extension    gif
tried        /catalog/  others: does not have the extension (line 19)
             /catalog/  gif: this one (line 16)
request set  www.acme.com /catalog/ gif
behaviour    cached from /srv/dogalog
file         /srv/dogalog/jumbo.gif
";
    assert_eq!(text, expected);
    assert!(found);
}

#[test]
fn conditions_rewrites_redirects_and_misses_are_told() {
    let (text, _) = asked("http://WWW.acme.com/catalog/buy.asp", &["Cookie: beta=yes"]);
    assert!(text.contains("asks for     /shop/buy.asp\n"), "{text}");
    let (text, _) = asked("http://www.acme.com/catalog/buy.asp", &[]);
    assert!(
        text.contains("/catalog/  others: cookie beta is not as it wants it (line 19)\n"),
        "{text}"
    );
    assert!(text.contains("behaviour    distributed to app\n"), "{text}");
    let (text, _) = asked("http://www.acme.com/old/a%20b?x=1", &[]);
    assert!(text.contains("location     https://www.acme.com/new/a%20b?x=1\n"), "{text}");
    let (text, found) = asked("http://other.org/", &[]);
    assert!(text.contains("answer       421") && !found, "{text}");
    let (text, _) = asked("http://www.acme.com:8080/", &[]);
    assert!(text.contains("nothing listens on the port of the URL"), "{text}");
}

#[test]
fn ways_that_the_kernel_has_no_room_for_are_told() {
    let site = |number| {
        format!("[[site]]\nlisten = [\"127.0.0.1:80\"]\nhosts = [\"h{number}\"]\nroot = \"/srv\"\n")
    };
    let text: String = (0..=MOST_WAYS).map(site).collect();
    let note = |number| {
        let (text, _) = asked_of(&text, &format!("http://h{number}/a"), &[]);
        text.contains("note         8 sites or prefixes before it lead to these files")
    };
    assert!(!note(0) && !note(MOST_WAYS - 1));
    assert!(note(MOST_WAYS));
}

#[test]
fn ids_are_told_and_what_they_mean_for_the_kernel() {
    let told = |site: &str, own: &str| {
        let file =
            format!("[[site]]\nroot = \"/srv\"\n{site}\n[[site.path]]\nprefix = \"/a/\"\n{own}\n");
        asked_of(&file, "/a/b", &[]).0
    };
    let never = "kernel       never answers: each answer has an id of its own\n";
    let text = told("request_id = \"on\"", "");
    assert!(text.contains("request id   X-Request-Id to servers and the client\n"), "{text}");
    assert!(text.contains(never), "{text}");
    let text = told("request_id = \"on\"\nrequest_id_field = \"X-Id\"", "request_id = \"servers\"");
    assert!(text.contains("request id   X-Id to servers\n") && !text.contains(never), "{text}");
    let text = told("traceparent = \"trusted\"\ntrace_share = 5", "");
    let of = "trace        of routers in forwarded_from, or a new one, 5% recorded\n";
    assert!(text.contains(of) && !text.contains(never), "{text}");
    let text = told("request_id = \"on\"", "request_id = \"off\"");
    assert!(!text.contains("request id ") && !text.contains(never), "{text}");
}

#[test]
fn limits_and_mirrors_are_told_wherever_servers_are_asked() {
    let told = |way: &str| {
        let more = "largest_content = \"1KiB\"\nmirror = \"127.0.0.1:3001\"\n";
        asked_of(&format!("[[site]]\n{way}\n{more}"), "/none/x", &[]).0
    };
    let rows =
        "limits       content 1.0 KiB\nmirror       127.0.0.1:3001 gets what servers are asked\n";
    for way in [
        "to = \"127.0.0.1:3000\"",
        "root = \"/srv\"\nfallback = \"127.0.0.1:3000\"",
        "root = \"/srv\"\nphp = \"unix:/run/php.sock\"",
    ] {
        let text = told(way);
        assert!(text.contains(rows), "{way}: {text}");
    }
    let text = told("root = \"/srv\"");
    assert!(!text.contains("limits ") && !text.contains("mirror "), "{text}");
}

#[test]
fn fields_that_the_site_writes_itself_are_told() {
    let file = "[[certificate]]\nchain = \"/c\"\nkey = \"/k\"\n[[site]]\ntls = [\"127.0.0.1:443\"]\nroot = \"/srv\"\n\
                hsts = \"max-age=60\"\nheaders = { X-Own = \"a\" }\n\
                [[site.path]]\nprefix = \"/api/\"\nto = \"127.0.0.1:3000\"\n";
    let own = "file: set X-Own: a\n";
    let strict = "answer: set Strict-Transport-Security: max-age=60  (over TLS)\n";
    let (text, _) = asked_of(file, "/a.css", &[]);
    assert!(text.contains(own) && text.contains(strict), "{text}");
    let (text, _) = asked_of(file, "/api/a", &[]);
    assert!(!text.contains(own) && text.contains(strict), "{text}");
}

#[test]
fn the_compression_of_servers_answers_is_told() {
    let told = |site: &str, own: &str, compression: &str| {
        let file = format!(
            "[compression]\ntypes = [\"text/*\"]\ncodings = [\"br\", \"gzip\"]\n{compression}
            [[site]]\nto = \"127.0.0.1:3000\"\n{site}
            [[site.path]]\nprefix = \"/a/\"\n[[site.path.content]]\nextensions = [\"x\"]\n{own}
            to = \"127.0.0.1:3000\"\n"
        );
        let (text, _) = asked_of(&file, "/a/b.x", &[]);
        let line = text.lines().find_map(|line| line.strip_prefix("compression  "));
        line.map(str::to_owned)
    };
    let all = Some("br, gzip for servers' text/* of 512 bytes or more".to_owned());
    assert_eq!(told("", "", ""), None);
    assert_eq!(told("compress = true", "", ""), all);
    assert_eq!(told("compress = true", "compress = false", ""), None);
    assert_eq!(told("", "compress = true", ""), all);
    let off = told("compress = true", "", "enabled = false");
    assert_eq!(off.as_deref(), Some("none: [compression] is off"));
}

#[test]
fn what_is_kept_is_told() {
    let told = |header: &[&str]| {
        let (text, _) = asked("http://www.acme.com/catalog/buy.asp", header);
        let line = text.lines().find_map(|line| line.strip_prefix("cache        "));
        line.unwrap_or_default().to_owned()
    };
    assert_eq!(told(&[]), "auto: kept if the answer says so");
    assert!(told(&["Authorization: x"]).contains("for others"));
    let bypassed = told(&["Cookie: a=b; wp_1=2"]);
    assert_eq!(bypassed, "not used: the request has the cookie wp_1 (`bypass_cookies`)");
    assert!(told(&["If-Match: x"]).starts_with("not used: the server alone"));
}
