//! The reflector, which the generator drives: the bound of all measurements.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use afpa_netlab::load::{LoadOptions, Target, browser_headers};
use afpa_netlab::reflect::{Handshakes, Reflector};
use afpa_netlab::{Bed, BedOptions, Offloads, Path, missing_privilege};

use crate::{ENOUGH, count, load, load_steadily};

#[test]
fn the_reflector_answers_both_families_with_and_without_offloads() {
    skip_unless_privileged!();
    for offloads in [Offloads::CARD, Offloads::NONE] {
        let path = Path::Direct(offloads);
        let bed = Bed::create(&BedOptions { path, ..BedOptions::default() }).unwrap();
        for address in [IpAddr::from(Bed::SERVER_V4), Bed::SERVER_V6.into()] {
            let address = SocketAddr::new(address, 80);
            for body in [512, 5_000, 60_000] {
                let reflector =
                    || Reflector::start(Bed::DEVICE, address, body, Handshakes::Kernel).unwrap();
                let _reflector = bed.server().run(reflector).unwrap();
                let target = Target { headers: browser_headers(), ..Target::get("/") };
                let mut options = LoadOptions::new(address, vec![target]);
                options.connections = 8; // all of whose segments the client's queue can hold
                let interval = load_steadily(&bed, &options);
                println!("{offloads:?} {address}, {body} bytes: {}", interval.line());
                assert_eq!(interval.errors, 0, "{interval:?}");
                let responses = count(&interval, "responses");
                assert!(responses > ENOUGH, "{interval:?}");
                // With a head each, and parts of answers that were under way at the ends of the interval.
                let (bytes, body) = (count(&interval, "response_bytes"), body as u64);
                let parts = 8 * (body + 300);
                let (least, most) = (responses * (body + 100), responses * (body + 300));
                assert!((least - parts..most + parts).contains(&bytes), "{interval:?}");
                assert_eq!(count(&interval, "gaps"), 0, "{interval:?}");
            }
        }
    }
}

/// It serves the sockets of the kernel's TCP as well as the generator.
#[test]
fn the_reflector_has_the_handshakes_of_one_request_a_connection() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    for address in [IpAddr::from(Bed::SERVER_V4), Bed::SERVER_V6.into()] {
        let address = SocketAddr::new(address, 80);
        let start = || Reflector::start(Bed::DEVICE, address, 5_000, Handshakes::Program).unwrap();
        let _reflector = bed.server().run(start).unwrap();
        let mut stream = bed.client().run(|| TcpStream::connect(address)).unwrap().unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, content) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(content.len(), 5_000);
        drop(stream);
        let options = LoadOptions {
            connections: 8,
            once: true,
            ..LoadOptions::new(address, vec![Target::get("/")])
        };
        let interval = load(&bed, &options);
        println!("{address}: {}", interval.line());
        assert_eq!(interval.errors, 0, "{interval:?}");
        assert!(count(&interval, "responses") > ENOUGH, "{interval:?}");
        assert_eq!(count(&interval, "gaps") + count(&interval, "stale"), 0, "{interval:?}");
    }
}
