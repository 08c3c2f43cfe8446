use afpa_h2::FieldCode;
use proptest::prelude::*;

use super::*;

fn fields(section: &[u8]) -> Result<Vec<(String, String)>, QpackError> {
    let mut all = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    decode(section, |name, value| all.push((text(name), text(value))))?;
    Ok(all)
}

fn one(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(name.to_owned(), value.to_owned())]
}

/// RFC 9204 appendix B.1.
#[test]
fn the_example_of_the_rfc() {
    let section = [&[0x00, 0x00, 0x51, 0x0b][..], b"/index.html"].concat();
    assert_eq!(fields(&section), Ok(one(":path", "/index.html")));
}

#[test]
fn each_kind_of_line() {
    assert_eq!(fields(b"\0\0\xd9"), Ok(one(":status", "200")));
    assert_eq!(fields(b"\0\0\xff\x23"), Ok(one("x-frame-options", "sameorigin")));
    assert_eq!(fields(b"\0\0\x23abc\x02de"), Ok(one("abc", "de")));
    assert_eq!(fields(b"\0\0\x27\x01abcdefgh\x01i"), Ok(one("abcdefgh", "i")));
    // "www.example.com" in Huffman code, of RFC 7541 appendix C.4.1.
    let coded = b"\0\0\x50\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
    assert_eq!(fields(coded), Ok(one(":authority", "www.example.com")));
    assert_eq!(fields(b"\0\0"), Ok(Vec::new()));
    // The Base of a section that requires nothing may be anything (section 4.5.1.2).
    assert_eq!(fields(b"\0\x85\xd9"), Ok(one(":status", "200")));
}

#[test]
fn the_dynamic_table_has_nothing() {
    for section in [
        &b"\x01\0\xd9"[..], // a Required Insert Count
        b"\0\0\x80",        // an index of the dynamic table
        b"\0\0\x40\x01a",   // a name of it
        b"\0\0\x10",        // behind the Base
        b"\0\0\x00\x01a",
    ] {
        assert_eq!(fields(section), Err(QpackError::Dynamic), "{section:02x?}");
    }
}

#[test]
fn broken_sections_are_refused() {
    for (section, error) in [
        (&b""[..], QpackError::Truncated),
        (b"\0", QpackError::Truncated),
        (b"\0\0\xff", QpackError::Truncated),
        (b"\0\0\xff\x24", QpackError::Index),
        (b"\0\0\x51\x0b/index", QpackError::Truncated),
        (b"\0\0\x23ab", QpackError::Truncated),
        (b"\0\0\x23abc", QpackError::Truncated),
        (b"\0\0\x50\x81\x00", QpackError::Huffman),
        (b"\0\0\xff\x80\x80\x80\x80\x00", QpackError::Truncated),
    ] {
        assert_eq!(fields(section), Err(error), "{section:02x?}");
    }
}

#[test]
fn every_status_comes_back() {
    for status in 100..=999u16 {
        let mut out = Vec::new();
        Qpack::begin(&mut out);
        Qpack::put_status(&mut out, status);
        assert_eq!(fields(&out), Ok(one(":status", &status.to_string())));
        assert!(![200, 304, 404].contains(&status) || out.len() == 3);
    }
}

#[test]
fn fields_of_the_table_take_a_byte_or_two() {
    for (name, value, length) in [
        ("Content-Type", "text/css", 1),
        ("x-frame-options", "sameorigin", 2),
        ("Vary", "accept-encoding", 1),
        ("Vary", "Accept-Encoding", 2 + 1 + 15), // values mind case
        ("server", "", 3),
        ("x-unknown", "1", 2 + 9 + 2),
    ] {
        let mut out = vec![0, 0];
        Qpack::put_field(&mut out, name.as_bytes(), value.as_bytes());
        assert_eq!(out.len() - 2, length, "{name}: {value}");
        assert_eq!(fields(&out), Ok(one(&name.to_lowercase(), value)));
    }
}

#[test]
fn instructions() {
    assert!(EncoderStream.read(b"").is_ok());
    assert!(EncoderStream.read(b"\x20\x20").is_ok());
    assert!(EncoderStream.read(b"\x3f\xe1\x1f").is_err(), "a capacity");
    assert!(EncoderStream.read(b"\xc0\x01a").is_err(), "an insert");
    let mut decoder = DecoderStream::default();
    assert!(decoder.read(b"\x44\x7f").is_ok());
    assert!(decoder.read(b"\x81\x01\x40").is_ok(), "a number in two parts");
    assert!(decoder.read(b"\x84").is_err(), "an acknowledgement of nothing");
    assert!(DecoderStream::default().read(b"\x01").is_err(), "an increment");
    let endless = [&b"\x7f"[..], &[0xff; 10]].concat();
    assert!(DecoderStream::default().read(&endless).is_err());
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        all in proptest::collection::vec(("[a-z0-9-]{1,80}", "[ -~]{0,200}"), 0..20)
    ) {
        let mut out = Vec::new();
        Qpack::begin(&mut out);
        for (name, value) in &all {
            Qpack::put_field(&mut out, name.to_uppercase().as_bytes(), value.as_bytes());
        }
        prop_assert_eq!(fields(&out), Ok(all));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(section in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = fields(&section);
    }
}

#[test]
fn a_kept_section_has_the_fields_of_its_head_but_those_of_a_connection() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nX-Own: 1\r\nX-OWN:  2 \r\n\r\n";
    let mut section = section_of(head).expect("a head");
    Qpack::put_field(&mut section, b"Age", b"5");
    let mut said = String::new();
    decode(&section, |name, value| {
        said += &format!("{}: {}\n", name.escape_ascii(), value.escape_ascii());
    })
    .expect("a section");
    assert_eq!(said, ":status: 200\ncontent-type: text/html\nx-own: 1\nx-own: 2\nage: 5\n");
    for no_head in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 103 Early\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx\r\n\r\n",
    ] {
        assert_eq!(section_of(no_head), None, "{}", no_head.escape_ascii());
    }
    assert_eq!(section_of(b"HTTP/1.1 200 OK\r\n\r\nmore"), None);
}
