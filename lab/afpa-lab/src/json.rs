//! `results.json`: JSON that people can page through and git can keep. Values near the root have lines
//! of their own, a turn is one line, and figures have six digits: more of them would be noise.

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Values below this depth share a line.
const DEEPEST: usize = 2;

/// Any value, in lines.
///
/// # Errors
///
/// When JSON cannot represent the value.
pub(crate) fn lines(value: &impl Serialize) -> Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Lines::default()))?;
    text.push(b'\n');
    Ok(String::from_utf8(text)?)
}

#[derive(Default)]
struct Lines {
    depth: usize,
    is_empty: bool,
}

impl Lines {
    fn open<W: Write + ?Sized>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.is_empty = true;
        writer.write_all(bracket)
    }

    fn close<W: Write + ?Sized>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.depth < DEEPEST && !self.is_empty {
            self.line(writer)?;
        }
        self.is_empty = false;
        writer.write_all(bracket)
    }

    fn item<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.is_empty = false;
        if !first {
            writer.write_all(b",")?;
        }
        if self.depth <= DEEPEST { self.line(writer) } else { Ok(()) }
    }

    fn line<W: Write + ?Sized>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b" "))
    }
}

impl Formatter for Lines {
    fn write_f64<W: Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // A size or a rate of the command line is no measurement.
        if value.fract() == 0.0 {
            return write!(writer, "{value:?}");
        }
        let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
        write!(writer, "{rounded:?}")
    }

    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.item(writer, first)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.item(writer, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.depth <= DEEPEST { b": " } else { b":" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_a_line_and_a_figure_has_six_digits() {
        let value = serde_json::json!({
            "left": [],
            "method": {"rounds": 5, "seconds": 0.300205805},
            "turns": [{"rate": [183071.23456, 1048576.0]}, {"rate": []}],
        });
        let text = lines(&value).unwrap();
        let expected = "{\n \"left\": [],\n \"method\": {\n  \"rounds\": 5,\n  \"seconds\": \
                        0.300206\n },\n \"turns\": [\n  {\"rate\":[183071.0,1048576.0]},\n  \
                        {\"rate\":[]}\n ]\n}\n";
        assert_eq!(text, expected);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["turns"][0]["rate"][0], 183071.0);
    }
}
