//! Frame Streams: frames behind their lengths, and control frames behind a length of zero. A writer says READY, the reader ACCEPT,
//! and the writer START; at the end it says STOP, and the reader FINISH.

/// The content of all frames.
const CONTENT: &[u8] = b"protobuf:dnstap.Dnstap";
/// The only field of control frames.
const CONTENT_TYPE: u32 = 1;
/// A longer control frame is none (fstrm has the same limit).
const LONGEST: usize = 512;

/// A control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The reader takes the content.
    Accept = 1,
    /// Frames follow.
    Start = 2,
    /// No more frames follow.
    Stop = 3,
    /// The writer offers the content.
    Ready = 4,
    /// The reader has read everything.
    Finish = 5,
}

impl Control {
    /// On the wire.
    pub fn bytes(self) -> Vec<u8> {
        let mut payload = (self as u32).to_be_bytes().to_vec();
        if !matches!(self, Control::Stop | Control::Finish) {
            payload.extend(CONTENT_TYPE.to_be_bytes());
            payload.extend((CONTENT.len() as u32).to_be_bytes());
            payload.extend(CONTENT);
        }
        let mut bytes = vec![0; 4];
        bytes.extend((payload.len() as u32).to_be_bytes());
        bytes.extend(payload);
        bytes
    }
}

/// The length of the control frame whose first eight bytes these are; `None`: they are none, or those of a longer one.
pub fn control_length(head: [u8; 8]) -> Option<usize> {
    let [0, 0, 0, 0, length @ ..] = head else { return None };
    let length = u32::from_be_bytes(length) as usize;
    (4..=LONGEST).contains(&length).then_some(length)
}

/// Whether a control frame, without its head, is this one, for our content.
pub fn is(control: Control, payload: &[u8]) -> bool {
    let Some((kind, fields)) = payload.split_first_chunk::<4>() else { return false };
    if u32::from_be_bytes(*kind) != control as u32 {
        return false;
    }
    let is_ours = fields.windows(CONTENT.len()).any(|content| content == CONTENT);
    // A reader that names no content takes any.
    fields.is_empty() || is_ours
}

/// A frame, behind its length.
pub fn frame(message: &[u8], out: &mut Vec<u8>) {
    out.extend((message.len() as u32).to_be_bytes());
    out.extend(message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_frames_are_those_of_fstrm() {
        let ready = Control::Ready.bytes();
        assert_eq!(ready[..16], [0, 0, 0, 0, 0, 0, 0, 34, 0, 0, 0, 4, 0, 0, 0, 1]);
        assert_eq!(ready[16..], [&[0, 0, 0, 22][..], CONTENT].concat());
        assert_eq!(Control::Stop.bytes(), [0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3]);
        let head = |bytes: &[u8]| control_length(*bytes.first_chunk().unwrap());
        assert_eq!(head(&ready), Some(34));
        assert_eq!(head(&[0, 0, 0, 1, 0, 0, 0, 4]), None);
        assert_eq!(head(&[0, 0, 0, 0, 0, 1, 0, 0]), None);
        assert!(is(Control::Ready, &ready[8..]) && !is(Control::Accept, &ready[8..]));
        assert!(is(Control::Accept, &[0, 0, 0, 1]) && !is(Control::Accept, &[]));
        let other = [&[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3][..], b"xyz"].concat();
        assert!(!is(Control::Accept, &other));
    }
}
