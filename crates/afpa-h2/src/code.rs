//! How a field section is written for one version of HTTP: by [HPACK](crate::hpack) for HTTP/2, by QPACK for HTTP/3.

/// A code of field sections that depend on nothing that was sent before.
pub trait FieldCode {
    /// Begins a field section.
    fn begin(out: &mut Vec<u8>);

    /// Appends `:status`.
    fn put_status(out: &mut Vec<u8>, status: u16);

    /// Appends a field, its name in lower case.
    fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]);
}
