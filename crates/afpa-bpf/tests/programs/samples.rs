//! Sampled answers: the request, and the bytes that left.

use afpa_bpf::{Sample, Settings, kind, sampled_answer, sampled_request};

use crate::support::{ETAG, PORT, SITE, World};

#[test]
fn a_sample_has_the_request_and_the_answer_as_it_left() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let samples = fast_path.reports.samples().expect("a ring buffer");
    fast_path.reports.set_sample_every(1);
    let conditional =
        format!("GET /kernel.html HTTP/1.1\r\nHost: server\r\nIf-None-Match: {ETAG}\r\n\r\n");
    let requests = [
        ("GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n", kind::WHOLE),
        ("HEAD /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n", kind::HEAD),
        (&conditional, kind::NOT_MODIFIED),
    ];
    for address in [crate::support::SERVER_V4, crate::support::SERVER_V6] {
        let mut client = world.connect(address);
        for (request, kind) in requests {
            fast_path.clock.beat();
            let answer = client.exchange_bytes(request);
            let drained = samples.drain().expect("samples");
            let [sample] = &drained[..] else { panic!("{request}: {} samples", drained.len()) };
            assert_eq!(sampled_request(sample), request.as_bytes());
            assert_eq!(sampled_answer(sample), answer, "{request}");
            assert_eq!((sample.kind, sample.site, sample.flow.server_port), (kind, SITE, PORT));
            assert!(fast_path.objects.answers_with(sample, b"/kernel.html"));
            assert!(!fast_path.objects.answers_with(sample, b"/user.html"));
            let other = Sample { version: sample.version + 1, ..*sample };
            assert!(!fast_path.objects.answers_with(&other, b"/kernel.html"));
        }
    }
}

#[test]
fn about_one_in_so_many_answers_is_sampled() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let samples = fast_path.reports.samples().expect("a ring buffer");
    let mut client = world.connect(crate::support::SERVER_V4);
    let mut seen = |every: u32, requests: usize| {
        fast_path.reports.set_sample_every(every);
        let mut count = 0;
        for _ in 0..requests {
            fast_path.clock.beat();
            client.exchange_bytes("GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n");
            count += samples.drain().expect("samples").len();
        }
        count
    };
    assert_eq!(seen(0, 50), 0);
    assert_eq!(seen(1, 50), 50);
    let some = seen(8, 800);
    assert!((25..400).contains(&some), "{some} of 800, one in eight wanted");
}
