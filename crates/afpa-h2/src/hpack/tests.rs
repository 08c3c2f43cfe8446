//! The examples of RFC 7541 appendix C, and both sides against each other.

use proptest::prelude::*;

use super::*;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, HpackError> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    decoder.decode(block, |name, value| fields.push((text(name), text(value))))?;
    Ok(fields)
}

fn fields(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Appendix C.4: three requests with Huffman codes, which use the table that they make.
#[test]
fn three_requests_of_one_connection() {
    let mut decoder = Decoder::default();
    let mut first = vec![
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ];
    let one = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
    assert_eq!(decode(&mut decoder, one), Ok(fields(&first)));
    first.push(("cache-control", "no-cache"));
    let two = b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf";
    assert_eq!(decode(&mut decoder, two), Ok(fields(&first)));
    let three = b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf";
    let third = fields(&[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ]);
    assert_eq!(decode(&mut decoder, three), Ok(third));
}

#[test]
fn broken_blocks_are_refused_for_what_is_broken() {
    for (block, error) in [
        (&b"\x80"[..], HpackError::Index),
        (b"\xbe", HpackError::Index),
        (b"\x7f\x00\x00", HpackError::Index),
        (b"\xff\xff\xff\xff\xff", HpackError::Truncated),
        (b"\x40\x01a\x02b", HpackError::Truncated),
        (b"\x40\x81\xff\x00", HpackError::Huffman),
        (b"\x3f\xe2\x1f", HpackError::TableSize),
        (b"\x82\x20", HpackError::TableSize),
    ] {
        assert_eq!(decode(&mut Decoder::default(), block), Err(error), "{}", block.escape_ascii());
    }
    assert_eq!(decode(&mut Decoder::default(), b"\x20\x3f\xe1\x1f"), Ok(vec![]), "0, then 4096");
}

#[test]
fn a_name_whose_entry_its_field_evicts_is_still_its_name() {
    let mut decoder = Decoder::default();
    let mut block = b"\x40\x04name\x7f".to_vec();
    let long = vec![b'v'; 127 + 3800];
    block.extend([0xd8, 0x1d]);
    block.extend(&long);
    decode(&mut decoder, &block).unwrap();
    // The second one refers to the first, and has no room beside it.
    let mut block = b"\x7e\x7f".to_vec();
    block.extend([0xd8, 0x1d]);
    block.extend(&long);
    assert_eq!(decode(&mut decoder, &block).unwrap()[0].0, "name");
    assert_eq!(decode(&mut decoder, b"\xbe").unwrap()[0].0, "name");
    assert_eq!(decode(&mut decoder, b"\xbf"), Err(HpackError::Index));
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        status in 100u16..600,
        written in proptest::collection::vec(("[A-Za-z-]{1,80}", "[ -~]{0,200}"), 0..20),
    ) {
        let mut block = Vec::new();
        encode::put_no_table(&mut block);
        encode::put_status(&mut block, status);
        for (name, value) in &written {
            encode::put_field(&mut block, name.as_bytes(), value.as_bytes());
        }
        let mut expected = vec![(":status".to_owned(), status.to_string())];
        expected.extend(written.iter().map(|(name, value)| {
            (name.to_ascii_lowercase(), value.as_bytes().escape_ascii().to_string())
        }));
        prop_assert_eq!(decode(&mut Decoder::default(), &block), Ok(expected));
    }

    #[test]
    fn no_bytes_make_it_panic_or_give_more_than_they_can(
        block in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let (mut decoder, mut given) = (Decoder::default(), 0);
        let _ = decoder.decode(&block, |name, value| given += name.len() + value.len());
        // A byte stands for one entry of the table at most, beside the bytes of the block itself.
        prop_assert!(given <= block.len() * (TABLE_SIZE + 8));
    }
}
