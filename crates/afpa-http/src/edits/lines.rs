//! The lines of a complete head at the end of a buffer.

/// Removes field lines behind the first line of a head.
pub(super) fn remove_lines(out: &mut Vec<u8>, begin: usize, goes: impl Fn(&[u8]) -> bool) {
    let line_end = |out: &[u8], from: usize| {
        let rest = out.get(from..).unwrap_or_default();
        rest.iter().position(|&byte| byte == b'\n').map_or(out.len(), |at| from + at + 1)
    };
    let mut read = line_end(out, begin);
    let mut write = read;
    while read < out.len() {
        let end = line_end(out, read);
        if !goes(name_of(out.get(read..end).unwrap_or_default())) {
            out.copy_within(read..end, write);
            write += end - read;
        }
        read = end;
    }
    out.truncate(write);
}

pub(super) fn name_of(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b':').next().unwrap_or_default()
}

/// Adds a line to the complete head at the end of the buffer.
pub(super) fn put_last(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.truncate(out.len().saturating_sub(b"\r\n".len()));
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(b"\r\n\r\n");
}
