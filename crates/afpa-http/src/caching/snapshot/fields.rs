//! The parts of a record: numbers, texts, lists. Reading gives exactly the parts that were written.

/// Writes parts.
pub(super) trait Put {
    fn put_number(&mut self, number: u64);
    fn put_bytes(&mut self, bytes: &[u8]);

    fn put_optional_number(&mut self, number: Option<u64>) {
        self.put_number(u64::from(number.is_some()));
        if let Some(number) = number {
            self.put_number(number);
        }
    }

    fn put_optional_bytes(&mut self, bytes: Option<&[u8]>) {
        self.put_number(u64::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.put_bytes(bytes);
        }
    }

    fn put_list<T: AsRef<[u8]>>(&mut self, list: &[T]) {
        self.put_number(list.len() as u64);
        list.iter().for_each(|bytes| self.put_bytes(bytes.as_ref()));
    }
}

impl Put for Vec<u8> {
    fn put_number(&mut self, number: u64) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_number(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// Reads parts from the front of the bytes that are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest<'b>(pub(super) &'b [u8]);

impl<'b> Rest<'b> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    pub(super) fn bytes(&mut self) -> Option<&'b [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'b str> {
        str::from_utf8(self.bytes()?).ok()
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(super) fn optional<T>(
        &mut self,
        one: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.flag()? {
            true => one(self).map(Some),
            false => Some(None),
        }
    }

    /// Each member takes some bytes, so the list is no longer than the bytes that are left.
    pub(super) fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(one(self)?);
        }
        Some(list)
    }
}
