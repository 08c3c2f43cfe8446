//! Makes the content codings of an object.

use std::io::{self, Write};

use afpa_http::Coding;
use afpa_proxy::coding::compress_by_brotli;

/// The type of [`compress`], for which tests substitute other functions.
pub(crate) type Encode = dyn Fn(Coding, u32, &[u8]) -> io::Result<Option<Vec<u8>>> + Send;

/// Compresses `content`; `None` when the result would not be worth sending.
///
/// # Errors
/// Errors of the encoders. They write to memory, and so fail only if there is not enough of it.
pub(super) fn compress(coding: Coding, level: u32, content: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let coded = match coding {
        Coding::Identity => return Ok(None),
        Coding::Gzip => gzip(level, content)?,
        Coding::Brotli => compress_by_brotli(level, content)?,
        Coding::Zstd => zstd::bulk::compress(content, level.clamp(1, 19) as i32)?,
    };
    // To save less than a twentieth is not worth the client's work.
    Ok((coded.len() + content.len() / 20 < content.len()).then_some(coded))
}

fn gzip(level: u32, content: &[u8]) -> io::Result<Vec<u8>> {
    let level = flate2::Compression::new(level.clamp(1, 9));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(content)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn decode(coding: Coding, coded: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        match coding {
            Coding::Gzip => {
                flate2::read::GzDecoder::new(coded).read_to_end(&mut content).expect("gzip");
            }
            Coding::Brotli => {
                brotli::BrotliDecompress(&mut &coded[..], &mut content).expect("brotli");
            }
            Coding::Zstd => content = zstd::stream::decode_all(coded).expect("zstd"),
            Coding::Identity => content.extend_from_slice(coded),
        }
        content
    }

    #[test]
    fn each_coding_gives_back_what_went_in() {
        let content = b"the same words again and again, ".repeat(200);
        for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
            let coded = compress(coding, 5, &content).expect("compresses").expect("is smaller");
            assert!(coded.len() < content.len() / 4, "{coding:?}: {}", coded.len());
            assert_eq!(decode(coding, &coded), content, "{coding:?}");
        }
    }

    #[test]
    fn what_does_not_shrink_is_left_alone() {
        let mut state = 88_172_645_463_325_252_u64;
        let mut xorshift = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        let noise: Vec<u8> = (0..2048).map(|_| xorshift()).collect();
        for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
            let coded = compress(coding, 5, &noise).expect("compresses");
            assert!(coded.is_none(), "{coding:?}: {:?}", coded.map(|coded| coded.len()));
        }
        assert!(compress(Coding::Gzip, 5, b"").expect("compresses").is_none());
    }
}
