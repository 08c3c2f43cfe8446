//! Pages and what becomes of them.

use std::collections::BTreeMap;

use super::*;

/// Files by path; those that end with `.shtml` have elements.
#[derive(Default)]
struct Folder {
    files: BTreeMap<String, String>,
    asked: Vec<String>,
}

impl Files for Folder {
    fn read(&mut self, path: &[u8], most: usize) -> Result<Document, Unreadable> {
        let path = String::from_utf8_lossy(path).into_owned();
        self.asked.push(path.clone());
        let content = self.files.get(&path).ok_or(Unreadable::Missing)?;
        if content.len() > most {
            return Err(Unreadable::TooLong);
        }
        let has_elements = path.ends_with(".shtml");
        Ok(Document { content: content.clone().into(), path: path.into(), has_elements })
    }

    fn look(&mut self, path: &[u8]) -> Result<Facts, Unreadable> {
        let content = self.files.get(&*String::from_utf8_lossy(path)).ok_or(Unreadable::Missing)?;
        Ok(Facts { size: content.len() as u64, modified: 784_111_777 })
    }
}

fn folder(files: &[(&str, &str)]) -> Folder {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    Folder { files: files.collect(), asked: Vec::new() }
}

fn page(content: &str) -> Page<'_> {
    let content = content.as_bytes();
    Page { path: b"/dir/page.shtml", content, modified: 784_111_777, now: 1_000_000_000 }
}

/// The page with this content, among these files.
fn expanded(content: &str, files: &[(&str, &str)]) -> Expanded {
    expand(&page(content), &mut folder(files), &Limits::default()).expect("it is short")
}

#[track_caller]
fn becomes(content: &str, wanted: &str) {
    let expanded = expanded(content, &[("/menu.html", "MENU"), ("/dir/a.shtml", "<A>")]);
    assert_eq!(String::from_utf8_lossy(&expanded.content), wanted, "{:?}", expanded.faults);
}

const ERROR: &str = "[an error occurred while processing this directive]";

#[test]
fn documents_are_put_in_their_places() {
    becomes("a<!--#include virtual=\"/menu.html\" -->b", "aMENUb");
    becomes("<!--#include file=\"a.shtml\" virtual=\"/menu.html\" -->", "<A>MENU");
    becomes("<!--#set var=\"M\" value=\"menu\" --><!--#include virtual=\"/$M.html\" -->", "MENU");
    for missing in
        ["virtual=\"/none\"", "file=\"/menu.html\"", "file=\"../menu.html\"", "wrong=\"x\""]
    {
        becomes(&format!("a<!--#include {missing} -->b"), &format!("a{ERROR}b"));
    }
    becomes("<!--#config errmsg=\"?\" --><!--#include virtual=\"/none\" -->", "?");
}

#[test]
fn variables_are_set_and_shown() {
    becomes("<!--#echo var=\"DOCUMENT_NAME\" -->", "page.shtml");
    becomes("<!--#set var=\"a\" value=\"<b>\" --><!--#echo var=\"A\" -->", "&lt;b&gt;");
    becomes("<!--#set var=\"a\" value=\"<b>\" --><!--#echo encoding=\"none\" var=\"a\" -->", "<b>");
    becomes(
        "<!--#set var=\"a\" value=\"1\" --><!--#set var=\"b\" value=\"${a}2\" --><!--#echo var=\"b\" -->",
        "12",
    );
    becomes("<!--#echo var=\"REMOTE_ADDR\" -->", "(none)");
    becomes("<!--#config echomsg=\"-\" --><!--#echo var=\"x\" -->", "-");
    becomes("<!--#config timefmt=\"%Y\" --><!--#echo var=\"LAST_MODIFIED\" -->", "1994");
    becomes("<!--#set value=\"1\" var=\"a\" -->", ERROR);
}

#[test]
fn a_page_and_what_it_includes_share_variables_but_not_messages() {
    let files = [(
        "/dir/part.shtml",
        "<!--#echo var=\"a\" --><!--#set var=\"a\" value=\"2\" --><!--#nonsense -->\
         <!--#echo var=\"DOCUMENT_NAME\" -->",
    )];
    let content = "<!--#config errmsg=\"E\" --><!--#set var=\"a\" value=\"1\" -->\
                   <!--#include file=\"part.shtml\" --><!--#echo var=\"a\" -->";
    let expanded = expanded(content, &files);
    assert_eq!(String::from_utf8_lossy(&expanded.content), format!("1{ERROR}page.shtml2"));
    assert_eq!(expanded.faults[0].path, b"/dir/part.shtml");
}

#[test]
fn one_branch_is_taken() {
    let branches = |value: &str| {
        format!(
            "<!--#set var=\"x\" value=\"{value}\" --><!--#if expr=\"v('x') = '1'\" -->one\
             <!--#if expr=\"true\" -->!<!--#endif --><!--#elif expr=\"v('x') = '2'\" -->two\
             <!--#if expr=\"false\" -->?<!--#else -->!<!--#endif --><!--#else -->many<!--#endif -->."
        )
    };
    becomes(&branches("1"), "one!.");
    becomes(&branches("2"), "two!.");
    becomes(&branches("3"), "many.");
}

#[test]
fn what_is_not_printed_does_nothing() {
    becomes(
        "<!--#if expr=\"false\" --><!--#set var=\"a\" value=\"1\" --><!--#nonsense -->\
         <!--#if expr=\"true\" -->a<!--#else -->b<!--#endif --><!--#include virtual=\"/none\" -->\
         <!--#endif --><!--#echo var=\"a\" -->",
        "(none)",
    );
}

#[test]
fn where_there_is_no_condition_no_branch_is_taken() {
    becomes("<!--#if expr=\"$x = 1\" -->a<!--#else -->b<!--#endif -->c", &format!("{ERROR}c"));
    becomes("<!--#if -->a<!--#endif -->c", &format!("{ERROR}c"));
}

#[test]
fn sizes_and_times_of_files_are_shown() {
    becomes("<!--#fsize virtual=\"/menu.html\" -->", "  4 ");
    becomes("<!--#config sizefmt=\"bytes\" --><!--#fsize file=\"a.shtml\" -->", "3");
    becomes("<!--#config timefmt=\"%F\" --><!--#flastmod virtual=\"/menu.html\" -->", "1994-11-06");
    becomes("<!--#flastmod virtual=\"/none\" -->", ERROR);
}

#[test]
fn what_is_not_offered_is_an_error() {
    for element in ["exec cmd=\"id\"", "exec cgi=\"/x\"", "printenv", "", "nonsense a=\"b\""] {
        becomes(&format!("<!--#{element} -->"), ERROR);
    }
    becomes("a<!--#echo var=\"x", &format!("a{ERROR}"));
}

#[test]
fn only_the_time_of_day_makes_a_page_of_the_moment() {
    let shows = |content: &str| expanded(content, &[]).shows_time;
    assert!(!shows("<!--#echo var=\"LAST_MODIFIED\" -->"));
    assert!(shows("<!--#echo var=\"DATE_LOCAL\" -->"));
    assert!(shows("<!--#set var=\"a\" value=\"$DATE_GMT\" -->"));
    assert!(shows("<!--#if expr=\"v('date_gmt') = ''\" --><!--#endif -->"));
    assert!(!shows("<!--#if expr=\"false\" --><!--#echo var=\"DATE_LOCAL\" --><!--#endif -->"));
}

#[test]
fn no_document_includes_itself() {
    let files = [
        ("/dir/a.shtml", "a<!--#include file=\"b.shtml\" -->"),
        ("/dir/b.shtml", "b<!--#include file=\"a.shtml\" -->"),
        ("/dir/page.shtml", "never"),
    ];
    let expanded =
        expanded("<!--#include file=\"page.shtml\" --><!--#include file=\"a.shtml\" -->", &files);
    assert_eq!(String::from_utf8_lossy(&expanded.content), format!("{ERROR}ab{ERROR}"));
    assert!(expanded.faults[1].cause.contains("includes itself"));
}

#[test]
fn depth_number_and_size_are_bounded() {
    let limits = Limits { size: 10_000, depth: 3, includes: 5 };
    let mut files: Vec<(String, String)> = (0..9)
        .map(|n| {
            (format!("/{n}.shtml"), format!("{n}<!--#include virtual=\"/{}.shtml\" -->", n + 1))
        })
        .collect();
    files.push(("/big.html".into(), "x".repeat(6_000)));
    let files: Vec<_> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let run = |content: &str| expand(&page(content), &mut folder(&files), &limits);

    let deep = run("<!--#include virtual=\"/0.shtml\" -->").expect("it fits");
    assert_eq!(String::from_utf8_lossy(&deep.content), format!("01{ERROR}"));
    let many = run(&"<!--#include virtual=\"/9.shtml\" -->".repeat(9)).expect("it fits");
    assert_eq!(many.content.len(), 9 * ERROR.len());
    assert!(many.faults.last().unwrap().cause.contains("too much"));
    assert_eq!(run(&"<!--#include virtual=\"/big.html\" -->".repeat(2)), Err(ExpandError::TooMuch));
    assert_eq!(run(&"x".repeat(10_001)), Err(ExpandError::TooMuch));
}

#[test]
fn a_page_cannot_work_for_ever() {
    let double = "<!--#set var=\"a\" value=\"$a$a\" -->".repeat(2_000);
    let content = format!("<!--#set var=\"a\" value=\"xxxx\" -->{double}");
    let limits = Limits { size: 100_000, ..Limits::default() };
    assert_eq!(expand(&page(&content), &mut folder(&[]), &limits), Err(ExpandError::TooMuch));
}

#[test]
fn faults_have_their_lines_and_are_few() {
    let content = format!("one\n<!--#nonsense -->\n{}", "<!--#nonsense -->".repeat(50));
    let expanded = expanded(&content, &[]);
    assert_eq!((expanded.faults.len(), expanded.faults[0].line), (8, 2));
    assert_eq!(expanded.faults[0].path, b"/dir/page.shtml");
}

#[test]
fn sizes_are_abbreviated_as_apache_does() {
    for (size, text) in [
        (0, "  0 "),
        (972, "972 "),
        (973, "1.0K"),
        (1_023, "1.0K"),
        (1_024, "1.0K"),
        (1_536, "1.5K"),
        (10_240, " 10K"),
        (996_147, "973K"),
        (1_048_576, "1.0M"),
        (123_456_789, "118M"),
    ] {
        let content = format!("{size}");
        let shown = document::abbreviated(size);
        assert_eq!(shown, text, "{content}");
    }
}

/// The work grows with the length of a page, not with its square.
#[test]
fn a_page_costs_as_much_as_it_is_long() {
    for (before, unit, behind) in [
        ("<!--#echo var=\"", "&", "\" -->"),
        ("<!--#echo var=\"", "&amp", "\" -->"),
        ("<!--#echo var=\"", "&lt;", "\" -->"),
        ("<!--#include virtual=\"", "&#0", ";\" -->"),
        ("<!--#set var=\"a\" value=\"", "${", "\" -->"),
        ("<!--#set var=\"a\" value=\"", "${", "}\" -->"),
        ("<!--#set var=\"a\" value=\"", "$\\", "\" -->"),
        ("<!--#set var=\"a\" value=\"", "${a}${", "\" -->"),
        ("<!--#config errmsg=\"\" -->", "\n<!--#x -->", ""),
        ("<!--#config echomsg=\"\" -->", "<!--#echo var=\"x\" -->\n", ""),
        ("", "<!--#", ""),
        ("", "<!--#x -->a", "<!--#x"),
        ("", "<!-- ", "-->"),
        ("<!--#if expr=\"true", " || '%{v:a}' = ''", "\" --><!--#endif -->"),
        ("<!--#if expr=\"'", "%{", "'\" --><!--#endif -->"),
        ("<!--#if expr=\"''", " . '}'", " = ''\" --><!--#endif -->"),
    ] {
        let cost = |count: usize| {
            let content = [before, &unit.repeat(count), behind].concat();
            let expand = || expand(&page(&content), &mut folder(&[]), &Limits::default());
            scan::looked_at(|| drop(expand()))
        };
        let (once, twice) = (cost(2000), cost(4000));
        assert!(twice <= once * 5 / 2, "{unit:?}: {once} bytes, and {twice} for twice as many");
    }
}

#[test]
fn values_of_variables_are_work_before_they_are_compared() {
    let long = "x".repeat(60_000);
    let words = vec!["v('a')"; 2000].join(" . ");
    let content = format!(
        "<!--#set var=\"a\" value=\"{long}\" --><!--#if expr=\"{words} = ''\" --><!--#endif -->"
    );
    let limits = Limits { size: 100_000, ..Limits::default() };
    assert_eq!(expand(&page(&content), &mut folder(&[]), &limits), Err(ExpandError::TooMuch));
}
