use super::*;
use crate::frame::put_header;

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_header(&mut out, kind, payload.len() as u64);
    out.extend_from_slice(payload);
    out
}

/// The result of a unidirectional stream that comes in pieces of a byte, and whole.
fn read(bytes: &[u8]) -> Result<Vec<Control>, Fatal> {
    let by = |piece: usize| {
        let mut connection = Connection::new(Limits::default());
        let mut all = Vec::new();
        for piece in bytes.chunks(piece) {
            connection.read(2, piece, 0, |control| all.push(control))?;
            if let Some(Control::Stop(_)) = all.last() {
                break;
            }
        }
        Ok(all)
    };
    let (bytewise, whole) = (by(1), by(usize::MAX));
    assert_eq!(bytewise, whole, "pieces change nothing");
    whole
}

fn control(frames: &[Vec<u8>]) -> Result<Vec<Control>, Fatal> {
    read(&[&[0][..], &frames.concat()].concat())
}

fn code(read: Result<Vec<Control>, Fatal>) -> ErrorCode {
    read.expect_err("it is wrong").code
}

fn settings() -> Vec<u8> {
    frame(kind::SETTINGS, b"\x06\x44\x00\x21\x01")
}

#[test]
fn our_control_stream_is_read_by_ourselves() {
    let connection = Connection::new(Limits::default());
    let mut out = Vec::new();
    connection.open(&mut out);
    assert_eq!(out, [0, 4, 7, 6, 0x80, 0, 0x80, 0, 8, 1]);
    assert_eq!(read(&out), Ok(vec![]));
    let mut goaway = Vec::new();
    Connection::put_goaway(&mut goaway, 40);
    assert_eq!(goaway, [7, 1, 40]);
}

#[test]
fn settings_come_first_and_once() {
    assert_eq!(control(&[settings()]), Ok(vec![]));
    assert_eq!(code(control(&[frame(kind::GOAWAY, b"\0")])), ErrorCode::MissingSettings);
    assert_eq!(code(control(&[frame(0x21, b"")])), ErrorCode::MissingSettings);
    assert_eq!(code(control(&[settings(), settings()])), ErrorCode::FrameUnexpected);
}

#[test]
fn wrong_settings() {
    for (payload, error) in [
        (&b"\x02\x00"[..], ErrorCode::Settings),
        (b"\x05\x01", ErrorCode::Settings),
        (b"\x21\x01\x21\x01", ErrorCode::Settings),
        (b"\x08\x02", ErrorCode::Settings),
        (b"\x33\x02", ErrorCode::Settings),
        (b"\x06", ErrorCode::Frame),
        (b"\x06\x40", ErrorCode::Frame),
    ] {
        assert_eq!(code(control(&[frame(kind::SETTINGS, payload)])), error, "{payload:02x?}");
    }
}

#[test]
fn frames_that_have_no_place_there() {
    for kind in [kind::DATA, kind::HEADERS, kind::PUSH_PROMISE, 0x02, 0x06, 0x08, 0x09] {
        assert_eq!(code(control(&[settings(), frame(kind, b"")])), ErrorCode::FrameUnexpected);
    }
}

#[test]
fn pushes_and_their_numbers() {
    let max = |id: &[u8]| frame(kind::MAX_PUSH_ID, id);
    assert_eq!(control(&[settings(), max(b"\x05"), max(b"\x05"), max(b"\x06")]), Ok(vec![]));
    assert_eq!(code(control(&[settings(), max(b"\x05"), max(b"\x04")])), ErrorCode::Id);
    assert_eq!(code(control(&[settings(), max(b"\x05\x05")])), ErrorCode::Frame);
    assert_eq!(code(control(&[settings(), max(b"")])), ErrorCode::Frame);
    assert_eq!(code(control(&[settings(), frame(kind::CANCEL_PUSH, b"\0")])), ErrorCode::Id);
    let goaway = |id: &[u8]| frame(kind::GOAWAY, id);
    assert_eq!(control(&[settings(), goaway(b"\x05"), goaway(b"\x04")]), Ok(vec![]));
    assert_eq!(code(control(&[settings(), goaway(b"\x04"), goaway(b"\x05")])), ErrorCode::Id);
    assert_eq!(code(read(b"\x01")), ErrorCode::StreamCreation);
}

#[test]
fn priorities() {
    let update = |payload: &[u8]| frame(kind::PRIORITY_UPDATE, payload);
    let urgent = Urgency { urgency: 1, incremental: true };
    let said = control(&[settings(), update(b"\x04u=1, i"), update(b"\x08")]);
    let right = [Control::Priority(4, urgent), Control::Priority(8, Urgency::default())];
    assert_eq!(said, Ok(right.to_vec()));
    assert_eq!(code(control(&[settings(), update(b"\x05u=1")])), ErrorCode::Id);
    assert_eq!(code(control(&[settings(), update(b"")])), ErrorCode::Frame);
    let push = frame(kind::PRIORITY_UPDATE_PUSH, b"\0u=1");
    assert_eq!(code(control(&[settings(), push])), ErrorCode::Id);
}

#[test]
fn streams_that_the_connection_needs() {
    let mut connection = Connection::new(Limits::default());
    let mut read = |id, bytes: &[u8]| {
        let mut stopped = false;
        connection.read(id, bytes, 0, |control| stopped = control == Control::Stop(id))?;
        Ok::<_, Fatal>(stopped)
    };
    assert_eq!(read(2, &[&[0][..], &settings()].concat()), Ok(false));
    assert_eq!(read(6, &[2]), Ok(false));
    assert_eq!(read(10, &[3]), Ok(false));
    assert_eq!(read(14, &[0x40, 0x21]), Ok(true), "nobody reads it");
    assert_eq!(read(18, &[0x40]), Ok(false), "half a type");
    for kind in [0, 2, 3] {
        assert_eq!(
            read(22 + 4 * u64::from(kind), &[kind]).unwrap_err().code,
            ErrorCode::StreamCreation
        );
    }
    assert_eq!(connection.ended(14), Ok(()));
    assert_eq!(connection.ended(18), Ok(()));
    for id in [2, 6, 10] {
        assert_eq!(connection.ended(id).unwrap_err().code, ErrorCode::ClosedCriticalStream);
    }
}

#[test]
fn long_frames_and_many_frames() {
    let long = frame(kind::SETTINGS, &[0; 1025]);
    assert_eq!(code(control(&[long])), ErrorCode::ExcessiveLoad);
    assert_eq!(
        control(&[settings(), frame(0x21, &[0; 100_000])]),
        Ok(vec![]),
        "of an unknown type"
    );
    let many = vec![frame(0x21, b""); 1025];
    assert_eq!(code(control(&[vec![settings()], many].concat())), ErrorCode::ExcessiveLoad);
}
