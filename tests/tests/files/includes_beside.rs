//! Server-side includes beside Apache's mod_include: the same pages from the same folder, byte for byte.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_testkit::server::free_address;
use afpa_testkit::{Client, Endpoint, Running, Server, Tree, eventually_within, skip};

use crate::includes::configuration;

const APACHE: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";

/// Pages whose elements both have to understand in the same way.
const PAGES: &[&str] = &[
    "plain text, <!-- a comment --> and <!- no element",
    // Includes.
    "[<!--#include virtual=\"/menu.html\" -->][<!--#include virtual=\"sub/part.html\" -->]",
    "[<!--#include file=\"menu.html\" -->][<!--#include file=\"sub/part.html\" -->]",
    "[<!--#include virtual=\"/sub/nested.shtml\" -->]",
    "[<!--#include virtual=\"/sub/\" -->]",
    "[<!--#include virtual=\"menu.html?a=b\" -->][<!--#include virtual=\"%6denu.html\" -->]",
    "[<!--#include virtual=\"/none.html\" -->][<!--#include file=\"none.html\" -->]",
    "[<!--#include file=\"/etc/passwd\" -->][<!--#include file=\"../menu.html\" -->]",
    "[<!--#include file=\"sub/../menu.html\" -->][<!--#include virtual=\"sub/../menu.html\" -->]",
    "[<!--#include virtual=\"/../../etc/passwd\" -->]",
    "[<!--#include file=\"menu.html\" file=\"none\" file=\"menu.html\" -->]",
    "[<!--#include -->][<!--#include file -->][<!--#include wrong=\"x\" -->]",
    "<!--#config errmsg=\"E\" -->[<!--#include virtual=\"/sub/faulty.shtml\" -->][<!--#include file=\"x\" -->]",
    "[<!--#include file=\"none\" file=\"menu.html\" -->][<!--#include file=\"menu.html\" file=\"none\" -->]",
    "[<!--#include file=\"none\" file=\"gone\" -->][<!--#include file=\"menu.html\" wrong=\"x\" -->]",
    "[<!--#include wrong=\"x\" file=\"menu.html\" -->][<!--#include file=\"menu.html\" virtual -->]",
    "[<!--#include file=\"a&amp;b.html\" -->][<!--#include file=\"a&b.html\" -->]",
    "[<!--#include virtual=\"/a&amp;b.html\" -->][<!--#include virtual=\"/a&b.html\" -->]",
    // Variables.
    "<!--#set var=\"A\" value=\"1\" -->[<!--#echo var=\"&#65;\" -->][<!--#echo -->][<!--#set -->][<!--#config -->]",
    "[<!--#set var=\"a\" -->][<!--#set var=\"a\" value -->][<!--#echo var -->][<!--#fsize -->][<!--#flastmod -->]",
    "[<!--#echo var=\"DOCUMENT_NAME\" wrong=\"x\" var=\"DOCUMENT_NAME\" -->]",
    "<!--#config errmsg=\"&lt;\" -->[<!--#wrong -->]<!--#config echomsg=\"&lt;$DOCUMENT_NAME\" -->[<!--#echo var=\"x\" -->]",
    "<!--#set var=\"a\" value=\"1\" var=\"b\" value=\"2\" -->[<!--#echo var=\"a\" var=\"b\" -->]",
    "<!--#set var=\"a\" value=\"\" -->[<!--#echo var=\"a\" -->]",
    "<!--#set var=\"a\" value=\"1\" -->[<!--#echo var=\"a\" -->][<!--#echo var=\"A\" -->]",
    "<!--#set var=\"a\" value=\"<b>&'\" -->[<!--#echo var=\"a\" -->][<!--#echo encoding=\"none\" var=\"a\" -->][<!--#echo encoding=\"url\" var=\"a\" -->]",
    "<!--#set var=\"a\" value=\"x y/z?q=%\" -->[<!--#echo encoding=\"url\" var=\"a\" -->][<!--#echo var=\"a\" encoding=\"url\" -->]",
    "<!--#set var=\"a\" value=\"1\" --><!--#set var=\"b\" value=\"$a-${a}2-$aa-\\$a-$\" -->[<!--#echo var=\"b\" -->]",
    "<!--#set var=\"a\" value=\"&lt;&amp;&quot;&#65;\" -->[<!--#echo var=\"a\" -->]",
    "<!--#set var=\"n\" value=\"menu\" -->[<!--#include virtual=\"/$n.html\" -->][<!--#echo var=\"$n\" -->]",
    "[<!--#echo var=\"none\" -->]<!--#config echomsg=\"?\" -->[<!--#echo var=\"none\" -->]",
    "[<!--#echo var=\"DOCUMENT_NAME\" -->][<!--#echo var=\"DOCUMENT_URI\" -->]",
    "<!--#set var=\"s\" value=\"before\" -->[<!--#include virtual=\"/sub/sets.shtml\" -->][<!--#echo var=\"s\" -->][<!--#echo var=\"t\" -->]",
    "[<!--#set value=\"1\" var=\"a\" -->][<!--#set var=\"a\" wrong=\"b\" -->]",
    "<!--#set var='single' value=`back` -->[<!--#echo var=single -->]",
    "<!--#set var=\"q\" value=\"say \\\"yes\\\" \\n\" -->[<!--#echo var=\"q\" -->]",
    // Times and sizes.
    "[<!--#echo var=\"LAST_MODIFIED\" -->][<!--#flastmod file=\"menu.html\" -->]",
    "<!--#config timefmt=\"%a %A %b %B %d %e %H %I %j %m %M %p %S %u %w %y %Y %Z %% %F %T %D %R %c\" -->[<!--#echo var=\"LAST_MODIFIED\" -->][<!--#flastmod virtual=\"/menu.html\" -->]",
    "<!--#config timefmt=\"%Y\" -->[<!--#include virtual=\"/sub/times.shtml\" -->][<!--#echo var=\"LAST_MODIFIED\" -->]",
    "[<!--#fsize file=\"menu.html\" -->][<!--#fsize virtual=\"/large.html\" -->][<!--#fsize file=\"middle.html\" -->][<!--#fsize file=\"empty.html\" -->]",
    "<!--#config sizefmt=\"bytes\" -->[<!--#fsize file=\"menu.html\" -->][<!--#fsize virtual=\"/large.html\" -->]",
    "[<!--#fsize file=\"none\" -->][<!--#flastmod file=\"none\" -->]",
    // Conditions.
    "<!--#if expr=\"true\" -->a<!--#else -->b<!--#endif -->c",
    "<!--#if expr=\"false\" -->a<!--#elif expr=\"true\" -->b<!--#else -->c<!--#endif -->d",
    "<!--#if expr=\"false\" -->a<!--#elif expr=\"false\" -->b<!--#else -->c<!--#endif -->d",
    "<!--#if expr=\"true\" -->a<!--#if expr=\"false\" -->b<!--#else -->c<!--#endif -->d<!--#else -->e<!--#if expr=\"true\" -->f<!--#endif -->g<!--#endif -->h",
    "<!--#if expr=\"false\" --><!--#if expr=\"true\" -->a<!--#else -->b<!--#endif --><!--#wrong --><!--#set var=\"x\" value=\"1\" --><!--#endif -->[<!--#echo var=\"x\" -->]",
    "<!--#if expr=\"false\" -->never ended",
    "<!--#else -->a<!--#endif -->b",
    "<!--#endif -->b",
    // Elements that are wrong.
    "[<!--#wrong -->][<!--#wrong a=\"b\" -->][<!--#ECHO VAR=\"DOCUMENT_NAME\" -->]",
    "[<!--#exec cmd=\"echo executed\" -->]",
    "[<!--#config sizefmt=\"wrong\" -->][<!--#config wrong=\"a\" -->]",
    "[<!--#echo encoding=\"wrong\" var=\"DOCUMENT_NAME\" -->]",
    "a <!--#echo var=\"DOCUMENT_NAME\" ",
    "a <!--#echo var=\"DOCUMENT_NAME -->",
    "a <!--#",
    "a <!--",
    "[<!--#echo var=\"DOCUMENT_NAME\"-->][<!--# echo var=\"DOCUMENT_NAME\" -->]",
    "<!--#if -->a<!--#endif -->b",
    "<!--#if expr=\"false\" -->a<!--#elif expr=\"wrong\" -->b<!--#else -->c<!--#endif -->d",
    "<!--#if expr=\"true\" -->a<!--#elif expr=\"wrong\" -->b<!--#else -->c<!--#endif -->d",
    "<!--#if expr=\"wrong\" -->a<!--#if expr=\"true\" -->b<!--#else -->c<!--#endif -->d<!--#endif -->e",
    "<!--#if expr=\"true\" -->a<!--#else wrong=\"x\" -->b<!--#endif -->c<!--#endif wrong=\"x\" -->d",
    "<!--#if expr=\"false\" -->a<!--#else wrong=\"x\" -->b<!--#endif -->c",
    "<!--#if wrong=\"true\" -->a<!--#else -->b<!--#endif -->c",
    "<!--#if expr -->a<!--#else -->b<!--#endif -->c",
    "<!--#if expr=\"true\" wrong=\"b\" -->a<!--#endif -->b",
];

/// Conditions, each in an `if` of its own.
const CONDITIONS: &[&str] = &[
    "v('a') = 'one'",
    "v('a') == 'two'",
    "v('A') != 'one'",
    "reqenv('a') = 'one'",
    "v('none') = ''",
    "-n v('a')",
    "-z v('a')",
    "-z v('none')",
    "-T v('n')",
    "-T 'off'",
    "! -n v('a')",
    "!(v('a') = 'one')",
    "v('a') = 'one' && v('n') = '12'",
    "v('a') = 'two' || v('n') = '12'",
    "false && false || true",
    "true || false && false",
    "(true || false) && false",
    "v('n') -gt 9",
    "v('n') -lt 9",
    "v('n') gt 9",
    "v('n') -eq 12 && 12 -ge 12 && 12 -le 12 && 12 -ne 11",
    "'9' > '10'",
    "'9' < '10'",
    "'abc' <= 'abd'",
    "tolower('ABC') = 'abc'",
    "toupper(v('a')) = 'ONE'",
    "v('a') . '-' . v('n') = 'one-12'",
    "'%{v:a}-%{v:n}' = 'one-12'",
    "'%{reqenv:a}' = 'one'",
    "'it\\'s' = 'it\\'s'",
    "true",
    "false",
    "wrong",
    "",
    "v('a') =",
    "= v('a')",
    "(true",
    "true)",
    "true true",
    "v('a'",
    "'unended",
];

#[test]
fn pages_are_expanded_as_apache_does() {
    if !Path::new(APACHE).exists() || !Path::new(MODULES).join("mod_include.so").exists() {
        skip!("there is no Apache here");
    }
    let tree = Tree::new();
    let names = write_pages(&tree);
    let apache = Apache::start(tree.path());
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| {
            let filter = "[[site.filter]]\nextensions = [\"shtml\"]\nincludes = true\n";
            configuration(endpoint, &tree, filter)
        });
    });
    let mut client = Client::connect(&apache.endpoint).expect("connect");
    let mut different = Vec::new();
    for (name, source) in &names {
        let (theirs, ours) = (client.get(name), server.get(name));
        assert_eq!((theirs.status, ours.status), (200, 200), "{name}");
        if theirs.text() != ours.text() {
            let (theirs, ours) = (theirs.text().to_owned(), ours.text().to_owned());
            different.push(format!("{source}\n  theirs {theirs:?}\n  ours   {ours:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// The names of the pages, and their content.
fn write_pages(tree: &Tree) -> Vec<(String, String)> {
    tree.file("menu.html", "<b>menu</b>");
    tree.file("empty.html", "");
    tree.file("middle.html", "x".repeat(9_999));
    tree.file("large.html", "x".repeat(1_234_567));
    tree.file("a&b.html", "a&b");
    tree.file("sub/index.html", "index");
    tree.file("sub/part.html", "part");
    tree.file(
        "sub/nested.shtml",
        "nested <!--#include file=\"part.html\" --> in <!--#echo var=\"DOCUMENT_NAME\" -->",
    );
    tree.file("sub/faulty.shtml", "<!--#include file=\"none\" -->");
    tree.file("sub/sets.shtml", "<!--#echo var=\"s\" --><!--#set var=\"s\" value=\"after\" --><!--#set var=\"t\" value=\"new\" -->");
    tree.file("sub/times.shtml", "<!--#echo var=\"LAST_MODIFIED\" --> <!--#flastmod file=\"part.html\" --><!--#config timefmt=\"%m\" -->");
    for (number, name) in ["menu.html", "sub/part.html"].into_iter().enumerate() {
        tree.set_modified(name, 784_111_777 + number as u64 * 40_000_000);
    }
    let conditions = CONDITIONS.iter().map(|condition| {
        format!(
            "<!--#set var=\"a\" value=\"one\" --><!--#set var=\"n\" value=\"12\" -->\
             <!--#if expr=\"{condition}\" -->yes<!--#else -->no<!--#endif -->"
        )
    });
    let pages = PAGES.iter().map(|page| (*page).to_owned()).chain(conditions);
    let written = pages.enumerate().map(|(number, page)| {
        let name = format!("/page-{number}.shtml");
        tree.file(&name[1..], &page);
        tree.set_modified(&name[1..], 1_000_000_000 + number as u64 * 86_461);
        (name, page)
    });
    written.collect()
}

/// Debian's Apache with mod_include, in one process.
struct Apache {
    endpoint: Endpoint,
    _running: Running,
    _folder: tempfile::TempDir,
}

impl Apache {
    fn start(root: &Path) -> Apache {
        let folder = tempfile::tempdir().expect("a folder");
        let address: SocketAddr = free_address();
        let at = folder.path().display();
        let modules = ["mpm_event", "authz_core", "dir", "mime", "filter", "include"]
            .map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n"))
            .concat();
        let root = root.display();
        let configuration = format!(
            "ServerRoot {at}\nServerName server\nMaxKeepAliveRequests 0\nListen {address}\nPidFile {at}/pid\nErrorLog {at}/errors\n\
             DefaultRuntimeDir {at}\n{modules}TypesConfig /dev/null\nAddType text/html .html .shtml\n\
             AddOutputFilter INCLUDES .shtml\nDirectoryIndex index.html\nDocumentRoot {root}\n\
             <Directory {root}>\nRequire all granted\nOptions +IncludesNOEXEC\n</Directory>\n"
        );
        let file = folder.path().join("apache.conf");
        fs::write(&file, configuration).expect("written");
        let mut command = Command::new(APACHE);
        command.arg("-X").arg("-f").arg(&file).env("TZ", "UTC");
        let running = Running::start(command.stdin(Stdio::null()).stderr(Stdio::null()));
        let endpoint = Endpoint::Tcp(address);
        eventually_within(Duration::from_secs(20), "Apache listens", || {
            Client::connect(&endpoint).is_ok()
        });
        Apache { endpoint, _running: running, _folder: folder }
    }
}
