//! The content codings of answers as they pass: bounded memory, and a flush whenever the server pauses.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

use afpa_http::Coding;
use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;

/// Encodes the content of one answer.
pub struct Encoder {
    inner: Box<dyn Encode>,
    /// Bytes went in that may not have come out yet.
    holds: bool,
    _place: Place,
}

/// The part that the encoders of all codings have in common. By its table, their code is once in the program, and not again in
/// every crate that drops one.
trait Encode: Write {
    /// The bytes that have come out.
    fn ready(&mut self) -> &mut Vec<u8>;

    /// Ends the content, and returns the bytes that have come out since.
    fn finish(self: Box<Self>) -> io::Result<Vec<u8>>;
}

impl Encode for GzEncoder<Vec<u8>> {
    fn ready(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }

    fn finish(self: Box<Self>) -> io::Result<Vec<u8>> {
        (*self).finish()
    }
}

impl Encode for brotli::CompressorWriter<Vec<u8>> {
    fn ready(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }

    fn finish(self: Box<Self>) -> io::Result<Vec<u8>> {
        Ok(self.into_inner())
    }
}

impl Encode for zstd::stream::write::Encoder<'static, Vec<u8>> {
    fn ready(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }

    fn finish(self: Box<Self>) -> io::Result<Vec<u8>> {
        (*self).finish()
    }
}

/// The encoders of one core, of which there is a limited number.
#[derive(Clone, Debug, Default)]
pub struct Places(Rc<Cell<usize>>);

/// A place for an encoder. Its drop makes room for another encoder.
#[derive(Debug)]
struct Place(Rc<Cell<usize>>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// The most encoders of a core at a time. Each takes 2 MiB at most, and less if the answer is known to be short.
pub const MOST_ENCODERS: usize = 64;

/// The places among them for answers that a cache keeps. Such an answer comes at the pace of its server, while a client that
/// reads slowly may hold another place for long.
const FOR_KEPT: usize = 16;

/// Efforts that keep up with a server: an event loop waits for each piece. Files are compressed once, and harder.
const GZIP_LEVEL: u32 = 5;
const BROTLI_QUALITY: i32 = 4;
const ZSTD_LEVEL: i32 = 3;

/// The logarithms of how far back encoders look, 64 and 256 KiB, which decide about their memory. Gzip looks back 32 KiB.
const BROTLI_WINDOW: u32 = 16;
const ZSTD_WINDOW: u32 = 18;

/// Bytes of an encoder's room for input.
const INPUT: usize = 4096;

impl Places {
    /// The last places are for answers that are kept: `keeps` says whether this is one.
    fn take(&self, keeps: &dyn Fn() -> bool) -> Option<Place> {
        let taken = self.0.get();
        let is_room = taken < MOST_ENCODERS - FOR_KEPT || (taken < MOST_ENCODERS && keeps());
        is_room.then(|| {
            self.0.set(taken + 1);
            Place(Rc::clone(&self.0))
        })
    }
}

/// The window for an answer of this length.
fn window(length: Option<u64>, most: u32) -> u32 {
    let needed = length.map_or(most, |length| length.max(1).ilog2() + 1);
    needed.clamp(10, most)
}

/// The length that the encoder of br gets to know: from 1 MiB on it would take a table of 4 MiB.
fn size_hint(length: u64) -> usize {
    const MOST: u64 = (1 << 20) - 1;
    usize::try_from(length.min(MOST)).unwrap_or_default()
}

impl Encoder {
    /// An encoder for content of this length, if that is known. `None`: there are too many, or there is no memory. `keeps`
    /// is asked when there are few places: whether a cache will keep the content.
    pub fn new(
        coding: Coding,
        length: Option<u64>,
        places: &Places,
        keeps: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let place = places.take(keeps)?;
        let inner: Box<dyn Encode> = match coding {
            Coding::Identity => return None,
            Coding::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Box::new(GzEncoder::new(Vec::new(), level))
            }
            Coding::Brotli => {
                let params = BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    lgwin: i32::try_from(window(length, BROTLI_WINDOW)).unwrap_or_default(),
                    size_hint: length.map_or(0, size_hint),
                    ..BrotliEncoderParams::default()
                };
                Box::new(brotli::CompressorWriter::with_params(Vec::new(), INPUT, &params))
            }
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL).ok()?;
                encoder.window_log(window(length, ZSTD_WINDOW)).ok()?;
                // A decoder and this encoder take less memory for content that is known to be short.
                encoder.set_pledged_src_size(length).ok()?;
                Box::new(encoder)
            }
        };
        Some(Self { inner, holds: false, _place: place })
    }

    /// Takes content, and appends what is ready to `out`.
    ///
    /// # Errors
    /// Only for want of memory, or if there is more content than was announced.
    pub fn write(&mut self, data: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.holds = true;
        self.inner.write_all(data)?;
        self.hand_over(out);
        Ok(())
    }

    /// Whether a flush would give bytes to a client that waits for them.
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Appends all that the client needs for the content so far.
    ///
    /// # Errors
    /// Only for want of memory.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.holds = false;
        self.inner.flush()?;
        self.hand_over(out);
        Ok(())
    }

    /// Appends the end of the content.
    ///
    /// # Errors
    /// Only for want of memory, or if there was less content than was announced.
    pub fn finish(self, out: &mut Vec<u8>) -> io::Result<()> {
        out.extend_from_slice(&self.inner.finish()?);
        Ok(())
    }

    fn hand_over(&mut self, out: &mut Vec<u8>) {
        out.append(self.inner.ready());
    }
}

/// All of the content of a file by br, with an effort of 1 to 11. It is here so that the program has the encoder once.
///
/// # Errors
/// Only for want of memory.
pub fn compress_by_brotli(effort: u32, content: &[u8]) -> io::Result<Vec<u8>> {
    let params = BrotliEncoderParams {
        quality: effort.clamp(1, 11) as i32,
        size_hint: content.len(),
        ..BrotliEncoderParams::default()
    };
    let mut coded = Vec::new();
    brotli::BrotliCompress(&mut &content[..], &mut coded, &params)?;
    Ok(coded)
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("holds", &self.holds).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read;

    const CODINGS: [Coding; 3] = [Coding::Gzip, Coding::Brotli, Coding::Zstd];

    /// As much of the content as can be had from these bytes.
    fn decoded(coding: Coding, coded: &[u8]) -> Vec<u8> {
        let mut reader: Box<dyn Read> = match coding {
            Coding::Gzip => Box::new(flate2::read::GzDecoder::new(coded)),
            Coding::Brotli => Box::new(brotli::Decompressor::new(coded, 4096)),
            Coding::Zstd => Box::new(zstd::stream::read::Decoder::new(coded).expect("a decoder")),
            Coding::Identity => Box::new(coded),
        };
        let (mut content, mut room) = (Vec::new(), [0; 512]);
        while let Ok(n @ 1..) = reader.read(&mut room) {
            content.extend_from_slice(&room[..n]);
        }
        content
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn however_content_comes_it_decodes_to_what_it_was(
            pieces in proptest::collection::vec(("[ab ]{0,40}", 0_usize..200, any::<bool>()), 0..12),
            noise in proptest::collection::vec(any::<u8>(), 0..300),
            knows_length: bool,
        ) {
            let mut pieces: Vec<(Vec<u8>, bool)> = pieces
                .into_iter()
                .map(|(text, times, flushes)| (text.repeat(times).into_bytes(), flushes))
                .collect();
            pieces.push((noise, false));
            let whole: Vec<u8> = pieces.iter().flat_map(|(piece, _)| piece.clone()).collect();
            let length = knows_length.then_some(whole.len() as u64);
            for coding in CODINGS {
                let places = Places::default();
                let mut encoder =
                    Encoder::new(coding, length, &places, &|| false).expect("a place");
                let (mut out, mut so_far) = (Vec::new(), Vec::new());
                for (piece, flushes) in &pieces {
                    encoder.write(piece, &mut out).expect("written");
                    so_far.extend_from_slice(piece);
                    if *flushes {
                        encoder.flush(&mut out).expect("flushed");
                        prop_assert!(!encoder.holds());
                        prop_assert!(decoded(coding, &out) == so_far, "{coding:?} after a flush");
                    }
                }
                encoder.finish(&mut out).expect("finished");
                prop_assert!(decoded(coding, &out) == whole, "{coding:?}");
            }
        }
    }

    #[test]
    fn there_are_no_more_encoders_than_places() {
        let places = Places::default();
        let make = |keeps: bool| Encoder::new(Coding::Gzip, None, &places, &|| keeps);
        let most = MOST_ENCODERS - FOR_KEPT;
        let mut all: Vec<_> = (0..most).map(|_| make(false).expect("a place")).collect();
        assert!(make(false).is_none(), "the others are for answers that are kept");
        all.extend((0..FOR_KEPT).map(|_| make(true).expect("a place")));
        assert!(make(true).is_none());
        all.pop();
        assert!(make(false).is_none());
        assert!(make(true).is_some(), "the end of one is room for another");
        all.clear();
        assert!(make(false).is_some());
        assert!(Encoder::new(Coding::Identity, None, &Places::default(), &|| true).is_none());
    }

    #[test]
    fn an_encoder_takes_no_more_memory_than_it_says() {
        let text: Vec<u8> = (0_u64..60_000)
            .flat_map(|n| format!("line {n} {:x}\n", n.wrapping_mul(0x9E37_79B9_7F4A)).into_bytes())
            .collect();
        let cases = CODINGS.into_iter().flat_map(|one| [(one, None), (one, Some(8 << 20))]);
        for (coding, length) in cases {
            let counted = allocation_counter::measure(|| {
                let places = Places::default();
                let mut encoder =
                    Encoder::new(coding, length, &places, &|| false).expect("a place");
                let mut out = Vec::with_capacity(64 << 10);
                for piece in text.chunks(32 << 10) {
                    out.clear();
                    encoder.write(piece, &mut out).expect("written");
                }
            });
            let most = counted.bytes_max;
            assert!(most <= 5 << 19, "{coding:?} of {length:?}: {most} bytes");
        }
    }

    #[test]
    fn what_is_short_needs_a_short_window() {
        let lengths = [Some(0), Some(1024), Some(100_000), Some(u64::MAX), None];
        assert_eq!(lengths.map(|length| window(length, 18)), [10, 11, 17, 18, 18]);
    }
}
