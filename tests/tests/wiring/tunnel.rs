//! A tun device, which has no Ethernet headers: AFPA looks at what comes in there, and answers nothing that would leave there.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use afpa_bpf::Reason;
use afpa_netlab::{Bed, Namespace};
use afpa_testkit::response::{Asked, ReceiveError};
use afpa_testkit::{Running, eventually};
use afpa_tests::tcp::{Lab, large};

use crate::support::{
    QUIET, attach_to_all, ip, lab, sysctl, to, user_mode_is_right, user_mode_serves,
};

/// Carries packets between a tun device and the socket that is its standard input.
const CARRIER: &str = "
import fcntl, os, select, struct
tun = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH22x', b'tun0', 0x1001))
while True:
    for ready in select.select([tun, 0], [], [])[0]:
        packet = os.read(ready, 65536)
        if not packet:
            raise SystemExit
        try:
            os.write(0 if ready == tun else tun, packet)
        except OSError:
            pass
";

/// `tun0` on both sides, 10.82.0.1 at the server and 10.82.0.2 at the client. None: SKIP was said.
pub(crate) fn tunnel(lab: &Lab) -> Option<[Running; 2]> {
    let sides = [lab.bed.server(), lab.bed.client()];
    if !std::path::Path::new("/dev/net/tun").exists() || !has_python(sides[0]) {
        afpa_testkit::aloud::say("SKIP", "no /dev/net/tun, or no python3 to carry its packets");
        return None;
    }
    let (one, other) = UnixDatagram::pair().expect("a pair of sockets");
    let start = |side: &Namespace, socket: UnixDatagram| {
        let mut command = side.command("python3");
        command.args(["-c", CARRIER]).stdin(OwnedFd::from(socket));
        Running::start(&mut command)
    };
    let carriers = [start(sides[0], one), start(sides[1], other)];
    for (side, address) in sides.into_iter().zip(["10.82.0.1/24", "10.82.0.2/24"]) {
        eventually("the device is there", || crate::support::try_ip(side, "link show tun0"));
        ip(side, &format!("addr add {address} dev tun0"));
        ip(side, "link set tun0 up");
        for interface in [Bed::DEVICE, "tun0", "all"] {
            sysctl(side, &format!("net.ipv4.conf.{interface}.rp_filter=0"));
        }
    }
    attach_to_all(lab);
    Some(carriers)
}

fn has_python(side: &Namespace) -> bool {
    side.command("python3").arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn connections_by_a_device_without_ethernet_are_user_mode_s() {
    let Some(lab) = lab() else { return };
    let Some(_carriers) = tunnel(&lab) else { return };
    for address in ["10.82.0.1", "10.77.0.1"] {
        if address == "10.77.0.1" {
            ip(lab.bed.client(), "route add 10.77.0.1/32 via 10.82.0.1 dev tun0");
            ip(lab.bed.server(), &format!("route add {}/32 dev tun0", client_v4()));
        }
        let mut client = to(&lab, address);
        user_mode_serves(&lab, &mut client);
        client.end();
    }
}

fn client_v4() -> IpAddr {
    Bed::client_address(Bed::SERVER_V4.into(), 0)
}

/// Routes change to the device in the middle of a connection: the way out, or both. (The way in is E8's.)
#[test]
fn a_way_that_changes_to_a_device_without_ethernet_carries_nothing_untranslated() {
    let Some(lab) = lab() else { return };
    if !lab.is_guarded() {
        afpa_testkit::skip!("there is no guard: no cgroup2");
    }
    let Some(_carriers) = tunnel(&lab) else { return };
    let server = (lab.bed.server(), format!("{}/32 dev tun0", client_v4()));
    let client = (lab.bed.client(), "10.77.0.1/32 via 10.82.0.1 dev tun0".to_owned());
    for changed in [vec![&server], vec![&server, &client]] {
        let mut connection = lab.client();
        lab.converse(&mut connection);
        for (side, route) in &changed {
            ip(side, &format!("route add {route}"));
        }
        let before = lab.count(Reason::DropNoWay);
        connection.set_patience(QUIET).expect("a time-out");
        connection.send("GET /large.html HTTP/1.1\r\nHost: server\r\n\r\n");
        let silence = connection.try_receive(Asked::Body);
        assert!(matches!(silence, Err(ReceiveError::TimedOut(_))), "{silence:?}");
        lab.await_count(Reason::DropNoWay, before + 1);
        for (side, route) in &changed {
            ip(side, &format!("route del {route}"));
        }
        connection.set_patience(Duration::from_secs(20)).expect("a time-out");
        assert!(connection.receive().body == large());
        user_mode_is_right(&mut connection);
        connection.end();
    }
}
