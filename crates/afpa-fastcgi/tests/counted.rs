//! A request and its answer take one piece of memory each, because every part is written where it goes.

use afpa_fastcgi::{RequestWriter, ResponseReader, put_param};

#[test]
fn a_request_and_an_answer_take_one_allocation_each() {
    let mut told = Vec::new();
    put_param(&mut told, b"SCRIPT_FILENAME", &[b"/srv/www", b"/x.php"]);
    let head = b"GET /x.php HTTP/1.1\r\nHost: a.example\r\nAccept: text/html\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n";
    let (mut writer, mut out) = (RequestWriter::new(false), Vec::new());
    let counted = allocation_counter::measure(|| {
        writer.write(head, &told, &mut out).expect("a request");
    });
    assert!(writer.is_done());
    assert_eq!(counted.count_total, 1, "{counted:?}");

    let mut records = Vec::new();
    let page = b"Content-Type: text/html\r\nContent-Length: 5\r\nX-Powered-By: PHP\r\n\r\nhello";
    for (kind, content) in [(6, &page[..]), (3, &[0; 8])] {
        records.extend_from_slice(&[1, kind, 0, 1, 0, content.len() as u8, 0, 0]);
        records.extend_from_slice(content);
    }
    let (mut reader, mut answer) = (ResponseReader::new(false, false, 1024), Vec::new());
    let counted = allocation_counter::measure(|| {
        reader.read(&records, &mut answer).expect("an answer");
    });
    assert!(reader.has_ended() && answer.ends_with(b"hello"));
    assert_eq!(counted.count_total, 1, "{counted:?}");
}
