use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::{FieldSlots, RequestLimits, request};

fn with_request<T>(fields: &str, then: impl FnOnce(&Request<'_, '_>) -> T) -> T {
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let mut slots = FieldSlots::new();
    let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
    then(&request.expect("valid").expect("whole"))
}

fn key(vary: &str, fields: &str) -> Vec<u8> {
    let names = names([vary.as_bytes()].into_iter()).expect("no star");
    let mut key = Vec::new();
    with_request(fields, |request| put_key(&names, request, &mut key));
    key
}

#[track_caller]
fn compare(vary: &str, one: &str, other: &str, same: bool) {
    assert_eq!(key(vary, one) == key(vary, other), same, "{vary}: {one:?} {other:?}");
}

#[test]
fn values_of_one_field_are_no_values_of_another() {
    let fields = "Foo: 1\r\nBar: 1\r\nAccept-Language: de\r\nX-Language: de\r\n";
    assert_ne!(key("Foo", fields), key("Bar", fields));
    assert_ne!(key("Accept-Language", fields), key("X-Language", fields));
    assert_ne!(key("Baz", fields), key("Quux", fields), "neither is there");
}

#[test]
fn the_value_of_one_field_is_told_from_its_absence() {
    let coding = "accept-encoding";
    let value = |fields: &str| {
        let key = key("Accept-Encoding", fields);
        value_of(&key, coding).map(|value| value.map(<[u8]>::to_vec))
    };
    assert_eq!(value(""), Some(None));
    assert_eq!(value("Accept-Encoding:\r\n"), Some(Some(Vec::new())));
    assert_eq!(value("Accept-Encoding: gzip, br\r\n"), Some(Some(b"br,gzip".to_vec())));
    assert_eq!(value("Accept-Encoding: gzip\r\nAccept_Encoding: br\r\n"), None);
    let other = key("X-Encoding", "X-Encoding: br\r\n");
    assert_eq!((value_of(b"", coding), value_of(&other, coding)), (None, None));
    let longer = key("Accept-Encoding-2", "Accept-Encoding-2: br\r\n");
    assert_eq!(value_of(&longer, coding), None);
}

#[test]
fn an_empty_field_is_not_an_absent_one() {
    for name in ["Foo", "Accept", "Accept-Language", "Accept-Encoding", "Cookie"] {
        for empty in ["", " ", "\t", ",", " , ,", ";", "\"\""] {
            compare(name, &format!("{name}: {empty}\r\n"), "", false);
        }
    }
}

#[test]
fn a_field_that_is_no_known_list_counts_byte_by_byte() {
    for (one, other, same) in [
        ("Foo: 1, 2\r\n", "foo: \t1, 2 \r\n", true),
        ("Foo: 1, 2\r\n", "Foo: 1,2\r\n", false),
        ("Foo: 1, 2\r\n", "Foo: 1\r\nFoo: 2\r\n", false),
        ("Foo: 1\r\n", "Foo: 1\r\nFoo:\r\n", false),
        ("Foo: 1\r\n", "Foo: 1,\r\n", false),
        ("Foo: a\r\n", "Foo: A\r\n", false),
        ("Foo: 1\r\nFoo: 2\r\n", "Foo: 2\r\nFoo: 1\r\n", false),
        ("Foo: \"a  b\"\r\n", "Foo: \"a b\"\r\n", false),
        ("Foo: 1\r\nBar: 2\r\n", "Bar: 3\r\nFoo: 1\r\n", true),
    ] {
        compare("Foo", one, other, same);
    }
    compare("foo,Bar,FOO", "Foo: 1\r\nBar: 2\r\n", "Bar: 2\r\nFoo: 1\r\n", true);
    compare("Foo, Bar", "Foo: 1\r\n", "Bar: 1\r\n", false);
}

#[test]
fn of_known_lists_only_that_is_left_out_which_means_nothing() {
    for (name, one, other, same) in [
        ("Accept", "a/b, c/d;q=0.5", "a/b ,, c/d;q=0.5,", true),
        ("Accept", "a/b, c/d", "c/d, a/b", false),
        ("Accept", "a/b;p=X", "a/b;p=x", false),
        ("Accept", "a/b;p=\"x, y\"", "a/b;p=\"x,y\"", false),
        ("Accept", "a/b;p=\"x\", c/d", "a/b;p=\"x\",c/d", false),
        ("Accept-Language", "en, de", "EN ,de", true),
        ("Accept-Language", "en, de", "de, en", false),
        ("Accept-Language", "e n", "en", false),
        ("Accept-Charset", "utf-8, x", "UTF-8,x", true),
        ("Accept-Charset", "utf-8, x", "x, utf-8", false),
        ("Accept-Encoding", "gzip, br", "BR,gzip", true),
        ("Accept-Encoding", "gzip;q=1, br;q=0.5", "br;q=0.5, gzip;q=1", true),
        ("Accept-Encoding", "gzip;q=1, br;q=0.5", "br;q=1, gzip;q=0.5", false),
        ("Accept-Encoding", "gzip;q=0, gzip", "gzip, gzip;q=0", false),
        ("Accept-Encoding", "br, gzip;q=0, gzip", "gzip;q=0, gzip, br", false),
        ("Accept-Encoding", "x-gzip, gzip ;q=0", "gzip ;q=0, x-gzip", false),
        ("Accept-Encoding", "gzip-a, gzip", "gzip, gzip-a", true),
        ("Accept-Encoding", "*;q=0, gzip", "gzip, *;q=0", true),
        ("Accept-Encoding", "gz ip", "gzip", false),
        ("Accept-Encoding", "br, gzip", "gzip", false),
    ] {
        let line = |value: &str| format!("{name}: {value}\r\n");
        compare(name, &line(one), &line(other), same);
    }
    compare("Accept", "Accept: a/b\r\nAccept: c/d\r\n", "accept: a/b, c/d\r\n", true);
}

#[test]
fn a_name_that_servers_take_for_the_field_counts() {
    for name in ["Foo-Bar", "Accept-Language", "Accept-Encoding"] {
        for other in [name.replace('-', "_"), name.replace('-', ".")] {
            compare(name, "", &format!("{other}: x\r\n"), false);
            let own = format!("{name}: x\r\n");
            compare(name, &own, &format!("{other}: x\r\n"), false);
            compare(name, &own, &format!("{own}{other}: y\r\n"), false);
            compare(name, &format!("{own}{other}: y\r\n"), &format!("{other}: y\r\n{own}"), false);
        }
    }
}

#[test]
fn a_star_among_the_names_is_no_list_of_names() {
    for star in ["*", "a, *", ", *", "*, *"] {
        assert!(names([star.as_bytes()].into_iter()).is_none(), "{star}");
    }
}

/// The lines of a request that a server may read as this field.
fn seen(name: &str, lines: &[(String, String)]) -> Vec<(String, String)> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '.'], "-");
    let own = lines.iter().filter(|(line, _)| plain(line) == plain(name));
    let own: Vec<(String, String)> =
        own.map(|(line, value)| (line.clone(), value.trim_matches([' ', '\t']).into())).collect();
    let is_list = ["Accept", "Accept-Language", "Accept-Encoding"].contains(&name);
    if !is_list
        || own.is_empty()
        || own.iter().any(|(line, value)| line != name || value.contains('"'))
    {
        return own;
    }
    let members = own.iter().flat_map(|(_, value)| value.split(','));
    let members =
        members.map(|member| member.trim_matches([' ', '\t'])).filter(|member| !member.is_empty());
    let mut members: Vec<String> = members.map(str::to_owned).collect();
    if name != "Accept" {
        members.iter_mut().for_each(|member| member.make_ascii_lowercase());
    }
    let codings = members.iter().map(|member| coding(member)).collect::<BTreeSet<_>>().len();
    if name == "Accept-Encoding" && codings == members.len() {
        members.sort_unstable();
    }
    vec![(name.to_owned(), members.join(","))]
}

/// The coding that a member names.
fn coding(member: &str) -> &str {
    member.split(';').next().unwrap_or_default().trim_matches([' ', '\t'])
}

fn lines() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop::sample::select(vec![
        "Accept",
        "Accept-Language",
        "Accept_Language",
        "Accept.Language",
        "Accept-Encoding",
        "Cookie",
        "X-A",
        "X_A",
    ]);
    let value = "(a|B|de|gzip|,|, | |\t|;q=0\\.5|\"|\"a, b\"|=|\u{e9}){0,4}";
    prop::collection::vec((name.prop_map(str::to_owned), value), 0..4)
}

proptest! {
    /// Two requests have one key exactly if a server that repeats the fields it reads would give both the same answer.
    #[test]
    fn requests_with_one_key_look_the_same_to_a_server(
        one in lines(),
        other in lines(),
        vary in prop::collection::vec(
            prop::sample::select(vec!["Accept", "Accept-Language", "Accept-Encoding", "Cookie", "X-A"]), 1..4),
    ) {
        let text = |lines: &[(String, String)]| {
            lines.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>()
        };
        let same = vary.iter().all(|name| seen(name, &one) == seen(name, &other));
        let vary = vary.join(", ");
        prop_assert_eq!(key(&vary, &text(&one)) == key(&vary, &text(&other)), same);
    }
}
