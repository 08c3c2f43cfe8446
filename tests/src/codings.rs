//! Content codings, decoded and encoded with their own libraries.

use std::io::{Read, Write};

use afpa_testkit::{Client, Endpoint, Server, eventually};

/// Decodes `body` as its Content-Encoding says; without one it stays as it is.
///
/// # Panics
/// When the coding is unknown or the body is not whole and valid in it.
pub fn decode(coding: Option<&str>, body: &[u8]) -> Vec<u8> {
    match coding {
        None => Ok(body.to_vec()),
        Some("gzip") => read_all(flate2::read::GzDecoder::new(body)),
        Some("br") => read_all(brotli::Decompressor::new(body, 4096)),
        Some("zstd") => zstd::decode_all(body),
        Some(other) => panic!("content coding {other:?}"),
    }
    .unwrap_or_else(|error| panic!("body does not decode as {coding:?}: {error}"))
}

/// Encodes `body`: how the siblings of a file are made.
///
/// # Panics
/// When the coding is unknown.
pub fn encode(coding: &str, body: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    match coding {
        "gzip" => {
            let level = flate2::Compression::best();
            let mut encoder = flate2::write::GzEncoder::new(&mut encoded, level);
            encoder.write_all(body).and_then(|()| encoder.try_finish()).expect("gzip");
        }
        "br" => {
            let mut encoder = brotli::CompressorWriter::new(&mut encoded, 4096, 9, 20);
            encoder.write_all(body).expect("brotli");
        }
        "zstd" => encoded = zstd::encode_all(body, 9).expect("zstd"),
        other => panic!("content coding {other:?}"),
    }
    encoded
}

/// Has the server make the codings of `targets`, as they are asked for again, and waits until it has.
///
/// # Panics
/// When it does not, or is not there.
#[track_caller]
pub fn settle(server: &Server, targets: &[impl AsRef<str>]) {
    let mut client = server.connect();
    for target in targets {
        for _ in 0..2 {
            client.get_with(target.as_ref(), "Accept-Encoding: gzip, br, zstd\r\n");
        }
    }
    eventually("the codings are made", || waiting(&server.control()) == 0);
}

/// Objects whose codings are being made, or wait for it.
fn waiting(control: &Endpoint) -> u64 {
    let stats = Client::connect(control).expect("the control socket").get("/stats");
    let stats: serde_json::Value = serde_json::from_slice(&stats.body).expect("JSON");
    stats["compression"]["waiting"].as_u64().expect("a count")
}

fn read_all(mut decoder: impl Read) -> std::io::Result<Vec<u8>> {
    let mut decoded = Vec::new();
    decoder.read_to_end(&mut decoded)?;
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn every_coding_decodes_to_what_was_encoded() {
        let text = "all work and no play ".repeat(500);
        for coding in ["gzip", "br", "zstd"] {
            let encoded = encode(coding, text.as_bytes());
            assert!(encoded.len() < text.len() / 2, "{coding}");
            assert_eq!(decode(Some(coding), &encoded), text.as_bytes(), "{coding}");
        }
    }
}
