//! Takes a snapshot apart.

use super::record::Record;
use super::{BEGIN_LEN, Broken, CHECK_LEN, Check, Clocks, END_LEN, MAGIC, VERSION};

/// Takes a snapshot apart. Its reader asks how many bytes are [wanted](Self::wants) next, and gives them.
#[derive(Debug)]
pub struct Decoder {
    next: Next,
    /// Bytes that the longest record may have.
    longest: usize,
    records: u64,
    checks: Check,
}

/// The next part of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Begin,
    Length,
    Record([u8; 4]),
    End,
    Nothing,
}

/// A part of the snapshot that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'b> {
    /// When it was written.
    Begin(Clocks),
    /// The length of the next record.
    Length,
    /// A record.
    Record(Box<Record<'b>>),
    /// It was whole, and had so many records.
    End(u64),
}

impl Decoder {
    /// For snapshots in which no record has more than `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self { next: Next::Begin, longest, records: 0, checks: Check::default() }
    }

    /// How many bytes it wants. 0: it has found the end, and nothing may follow.
    pub fn wants(&self) -> usize {
        match self.next {
            Next::Begin => BEGIN_LEN,
            Next::Length => 4,
            Next::Record(len) => (u32::from_le_bytes(len) as usize).saturating_add(CHECK_LEN),
            Next::End => END_LEN - 4,
            Next::Nothing => 0,
        }
    }

    /// Takes as many bytes as it [wants](Self::wants); fewer, if there are no more.
    ///
    /// # Errors
    /// [`Broken`]. It is not to be used after one.
    pub fn take<'b>(&mut self, bytes: &'b [u8]) -> Result<Piece<'b>, Broken> {
        match self.next {
            Next::Begin => self.begin(bytes),
            _ if bytes.len() < self.wants() => Err(Broken::Cut),
            Next::Length => self.length(bytes),
            Next::Record(len) => self.record(len, bytes),
            Next::End => self.end(bytes),
            Next::Nothing => Err(Broken::Longer),
        }
    }

    fn begin<'b>(&mut self, bytes: &[u8]) -> Result<Piece<'b>, Broken> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(match MAGIC.starts_with(bytes) {
            true => Broken::Cut,
            false => Broken::Foreign,
        })?;
        let (version, rest) = rest.split_first_chunk().ok_or(Broken::Cut)?;
        // The bytes behind the version belong to the format of that version, the check included.
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(Broken::Version(version));
        }
        if bytes.len() < BEGIN_LEN {
            return Err(Broken::Cut);
        }
        let mut numbers = rest.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number));
        let mut number = || numbers.next().ok_or(Broken::Cut);
        let clocks = Clocks { unix_us: number()?, boot: number()?, boot_us: number()? };
        self.checked(&[], bytes)?;
        self.next = Next::Length;
        Ok(Piece::Begin(clocks))
    }

    fn length<'b>(&mut self, bytes: &[u8]) -> Result<Piece<'b>, Broken> {
        let len = *bytes.first_chunk().ok_or(Broken::Cut)?;
        self.next = match u32::from_le_bytes(len) as usize {
            0 => Next::End,
            // The length stands before its check, so a length beyond all limits is one that has changed.
            more if more > self.longest => return Err(Broken::Changed),
            _ => Next::Record(len),
        };
        Ok(Piece::Length)
    }

    fn record<'b>(&mut self, len: [u8; 4], bytes: &'b [u8]) -> Result<Piece<'b>, Broken> {
        let record = self.checked(&len, bytes)?;
        let record = Record::parse(record).ok_or(Broken::Malformed)?;
        self.records += 1;
        self.next = Next::Length;
        Ok(Piece::Record(Box::new(record)))
    }

    fn end<'b>(&mut self, bytes: &[u8]) -> Result<Piece<'b>, Broken> {
        let (records, check) = bytes.split_last_chunk().ok_or(Broken::Cut)?;
        self.checks.add(&[0; 4]);
        self.checks.add(records);
        if *check != self.checks.value() || *records != self.records.to_le_bytes() {
            return Err(Broken::Changed);
        }
        self.next = Next::Nothing;
        Ok(Piece::End(self.records))
    }

    /// The bytes before their check. The check is also about the bytes `before` them.
    fn checked<'b>(&mut self, before: &[u8], bytes: &'b [u8]) -> Result<&'b [u8], Broken> {
        let (content, found) = bytes.split_last_chunk::<CHECK_LEN>().ok_or(Broken::Cut)?;
        let mut check = Check::default();
        check.add(before);
        check.add(content);
        self.checks.add(found);
        if check.value() == *found { Ok(content) } else { Err(Broken::Changed) }
    }
}
