//! Set-up and removal of namespaces and beds.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use afpa_netlab::{Bed, BedOptions, Namespace, Offloads, Path, Steering, missing_privilege, reap};

macro_rules! skip_unless_privileged {
    () => {
        if let Some(reason) = missing_privilege() {
            eprintln!("SKIP: {reason}");
            return;
        }
    };
}

fn exists(name: &str) -> bool {
    std::path::Path::new("/run/netns").join(name).exists()
}

fn say_hello_over(bed: &Bed, server: IpAddr) -> String {
    let listener = bed.server().run(|| TcpListener::bind((server, 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let greeter = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"hello"));
    let mut greeting = String::new();
    let mut client = bed.client().run(|| connect(address)).unwrap();
    client.read_to_string(&mut greeting).unwrap();
    greeter.join().unwrap().unwrap();
    greeting
}

fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect_timeout(&address, Duration::from_secs(30)).unwrap()
}

#[test]
fn both_families_reach_across_and_nothing_is_left_behind() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions { sources: 3, ..BedOptions::default() }).unwrap();
    let names = [bed.client().name().to_owned(), bed.server().name().to_owned()];
    for server in [IpAddr::from(Bed::SERVER_V4), Bed::SERVER_V6.into()] {
        assert_eq!(say_hello_over(&bed, server), "hello");
    }
    let third = Bed::client_address(Bed::SERVER_V4.into(), 2);
    bed.client().run(|| TcpListener::bind((third, 0)).unwrap()).unwrap();
    assert!(names.iter().all(|name| exists(name)));
    drop(bed);
    assert!(!names.iter().any(|name| exists(name)));
}

#[test]
fn steering_offloads_and_congestion_control_are_as_asked() {
    skip_unless_privileged!();
    let before = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    let bed = Bed::create(&BedOptions {
        path: Path::Direct(Offloads::NONE),
        steering: Steering::Cores { server: 0, client: 1 },
        ..BedOptions::default()
    })
    .unwrap();
    for (side, mask) in [(bed.server(), "1"), (bed.client(), "2")] {
        assert_eq!(side.interface(Bed::DEVICE).offloads().unwrap(), Offloads::NONE);
        let read = |path: &str| {
            let output = side.command("cat").arg(path).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        assert_eq!(read("/sys/class/net/eth0/queues/rx-0/rps_cpus"), mask);
        assert_eq!(read("/proc/sys/net/ipv4/tcp_congestion_control"), "cubic");
    }
    let after = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    assert_eq!(before.unwrap(), after.unwrap());
}

#[test]
fn a_dropped_namespace_takes_its_processes_along() {
    skip_unless_privileged!();
    let namespace = Namespace::create("doomed").unwrap();
    let mut sleeper = namespace.command("sleep").arg("60").spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(30);
    while namespace.processes().unwrap().is_empty() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(namespace.processes().unwrap(), [sleeper.id() as i32]);
    drop(namespace);
    assert!(!sleeper.wait().unwrap().success());
}

/// A child of this test makes a namespace and is killed; the parent removes what it left.
#[test]
fn a_killed_owner_is_cleaned_up_after() {
    skip_unless_privileged!();
    const CHILD: &str = "AFPA_NETLAB_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let namespace = Namespace::create("orphan").unwrap();
        println!("name={}", namespace.name());
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_owner_is_cleaned_up_after", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let name = name_told_by(child.stdout.as_mut().unwrap());
    reap().unwrap();
    assert!(exists(&name), "its owner lives");
    child.kill().unwrap();
    child.wait().unwrap();
    // Another run may reap it first. It only has to be gone.
    reap().unwrap();
    assert!(!exists(&name));
}

fn name_told_by(output: &mut impl Read) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while !(text.contains("name=") && text.ends_with('\n')) {
        output.read_exact(&mut byte).unwrap();
        text.push(byte[0] as char);
    }
    text.split_once("name=").unwrap().1.trim().to_owned()
}
