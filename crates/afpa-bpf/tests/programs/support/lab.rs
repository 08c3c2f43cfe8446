//! A server with long answers pinned, and the steps of hand-made clients with them.

use std::time::Duration;

use afpa_bpf::{Reason, Settings};

use afpa_testkit::packet::Segment;
use afpa_testkit::tcp::RawClient;

use super::{Lent, Sample, World};

pub const SOON: Duration = Duration::from_millis(60);
pub const UNIT: usize = 1448;

pub fn settings() -> Settings {
    Settings { answer_max: 65_536, pages: 64, transfers: 16, ..Settings::default() }
}

pub fn body(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

pub struct Lab {
    pub world: World,
    pub fast_path: Lent,
}

impl Lab {
    pub fn new(settings: Settings) -> Option<Self> {
        let mut world = World::new()?;
        world.file("user.html", b"from nginx");
        world.file("big.html", b"big, but from nginx");
        world.nginx("");
        world.await_server();
        let fast_path = world.fast_path(settings.clone())?;
        Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html");
        Sample::new(body(5000)).pin(&fast_path, "/some.html");
        if settings.answer_max > 60_000 {
            Sample::new(body(60_000)).pin(&fast_path, "/big.html");
        }
        Some(Self { world, fast_path })
    }

    pub fn connected(&self) -> RawClient {
        let mut client = self.world.raw();
        client.connect();
        self.fast_path.clock.beat();
        client
    }

    pub fn count(&self, reason: Reason) -> u64 {
        self.fast_path.stats.counters().expect("counters")[reason]
    }

    /// Time goes by, and timers are serviced.
    pub fn service_timers(&self, time: Duration) {
        self.world.service_timers(&self.fast_path, time);
    }

    /// All is as after any answer: both contexts serve the connection.
    pub fn goes_on(&self, client: &mut RawClient) {
        self.fast_path.clock.beat();
        assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
        assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
        assert_eq!(self.fast_path.flows.transfers().expect("counted"), 0);
    }
}

pub fn data(segments: Vec<Segment>) -> Vec<Segment> {
    segments.into_iter().filter(|segment| !segment.payload.is_empty()).collect()
}

/// Asks, and takes the segments that come before the client acknowledges any.
pub fn begin(client: &mut RawClient, path: &str) -> (Segment, Vec<Segment>) {
    let request = client.get(path);
    client.send(&request);
    client.seq = request.seq.wrapping_add(request.payload.len() as u32);
    let segments = data(client.answers(SOON));
    (request, segments)
}

/// These segments, one behind the other, as bytes from `client.ack` on.
pub fn join(client: &mut RawClient, segments: &[Segment]) -> Vec<u8> {
    segments.iter().for_each(|segment| {
        assert!(segment.checksum_holds, "{segment:?}");
        assert_eq!(segment.ack, client.seq, "the request is acknowledged");
        client.accept(segment);
    });
    segments.iter().flat_map(|segment| segment.payload.clone()).collect()
}

/// Nothing but bytes that came before, without a gap, in segments of whatever length?
pub fn repeats(segments: &[Segment], before: &[Segment]) -> bool {
    let stream: Vec<u8> = before.iter().flat_map(|segment| segment.payload.clone()).collect();
    segments.iter().all(|segment| {
        let at = segment.seq.wrapping_sub(before[0].seq) as usize;
        stream.get(at..).is_some_and(|stream| stream.starts_with(&segment.payload))
    })
}

pub fn check(whole: &[u8], length: usize) {
    let at = whole.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&whole[..at]);
    assert!(head.contains("Server: afpa-kernel") && !head.contains("xxx"), "{head}");
    assert!(whole[at..] == body(length), "content of {} bytes, not {length}", whole.len() - at);
}
