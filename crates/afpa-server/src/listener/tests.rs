use super::*;
use std::fs;
use std::os::unix::net::UnixStream;

#[test]
fn port_zero_becomes_one_port_for_all_workers() {
    let address = "127.0.0.1:0".parse().expect("an address");
    let bound = BoundListener::bind(&address, 2, 16).expect("binds");
    let Address::Tcp(chosen) = bound.address else { panic!("tcp stays tcp") };
    assert_ne!(chosen.port(), 0);
    for worker in 0..2 {
        let sockets = bound.for_worker(worker, 2).expect("sockets");
        let [WorkerSocket::Tcp(socket)] = &sockets[..] else { panic!("one of TCP") };
        assert_eq!(socket.local_addr().expect("bound"), chosen);
    }
}

/// A socket that nobody accepts on would lose the connections of its queue.
#[test]
fn all_sockets_of_another_process_are_used_by_more_and_by_fewer_workers() {
    let address = "127.0.0.1:0".parse().expect("an address");
    for (before, now) in [(3, 1), (3, 2), (2, 2), (1, 3), (2, 5)] {
        let old = BoundListener::bind(&address, before, 16).expect("binds");
        old.listen().expect("nobody else does");
        let Sockets::Tcp(sockets) = &old.sockets else { panic!("tcp stays tcp") };
        let handed: io::Result<Vec<_>> = sockets.iter().map(|one| one.try_clone()).collect();
        let new = BoundListener::adopt_tcp(handed.expect("cloned"), now, 16).expect("adopts");
        new.listen().expect("the other one is no stranger");
        assert_eq!(new.address, old.address);
        let of = |worker| new.for_worker(worker, now).expect("sockets");
        let counts: Vec<usize> = (0..now).map(|worker| of(worker).len()).collect();
        assert_eq!(counts.iter().sum::<usize>(), before.max(now), "{before} {now}");
        assert!(counts.iter().all(|count| *count > 0), "{before} {now}");
    }
}

/// As a service manager binds it: nobody else may bind the address.
#[test]
fn one_socket_without_reuse_of_the_port_is_shared_by_all_workers() {
    let one = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let bound = BoundListener::adopt_tcp(vec![one], 3, 16).expect("adopts");
    for worker in 0..3 {
        assert_eq!(bound.for_worker(worker, 3).expect("sockets").len(), 1);
    }
}

#[test]
fn a_unix_socket_that_the_next_process_has_keeps_its_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s");
    let old = BoundListener::bind(&Address::Unix(path.clone()), 1, 16).expect("binds");
    let Sockets::Unix(_, listener) = &old.sockets else { panic!("unix stays unix") };
    let handed = listener.try_clone().expect("cloned");
    let new = BoundListener::adopt_unix(handed, &path, 16).expect("adopts");
    drop(new);
    UnixStream::connect(&path).expect("the old one is still there");
    let Sockets::Unix(_, listener) = &old.sockets else { panic!("unix stays unix") };
    let handed = listener.try_clone().expect("cloned");
    let new = BoundListener::adopt_unix(handed, &path, 16).expect("adopts");
    old.leave_file();
    new.take_file();
    drop(old);
    UnixStream::connect(&path).expect("the new one is still there");
    drop(new);
    assert!(!path.exists());
}

#[test]
fn a_port_that_somebody_listens_on_is_refused() {
    let first =
        BoundListener::bind(&"127.0.0.1:0".parse().expect("address"), 1, 16).expect("binds");
    first.listen().expect("nobody else does");
    let error = BoundListener::bind(&first.address, 1, 16).expect_err("in use");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn clients_are_refused_until_it_listens() {
    let bound =
        BoundListener::bind(&"127.0.0.1:0".parse().expect("address"), 2, 16).expect("binds");
    let Address::Tcp(address) = bound.address else { panic!("tcp stays tcp") };
    let error = std::net::TcpStream::connect(address).expect_err("nobody listens");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    bound.listen().expect("nobody else does");
    std::net::TcpStream::connect(address).expect("both sockets listen");
}

#[test]
fn of_two_that_start_at_once_the_first_to_listen_has_the_address() {
    let first =
        BoundListener::bind(&"127.0.0.1:0".parse().expect("address"), 1, 16).expect("binds");
    let second = BoundListener::bind(&first.address, 1, 16).expect("neither listens yet");
    first.listen().expect("nobody else does");
    let error = second.listen().expect_err("in use");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn a_unix_socket_that_took_the_place_of_another_stays_when_that_one_ends() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s");
    let address = Address::Unix(path.clone());
    let old = BoundListener::bind(&address, 1, 16).expect("binds");
    fs::remove_file(&path).expect("somebody makes room");
    let new = BoundListener::bind(&address, 1, 16).expect("binds");
    drop(old);
    UnixStream::connect(&path).expect("the new one is still there");
    drop(new);
    assert!(!path.exists());
}

#[test]
fn a_stale_unix_socket_is_replaced_and_a_live_one_is_not() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("binds"));
    let address = Address::Unix(path.clone());
    let live = BoundListener::bind(&address, 1, 16).expect("the stale file is replaced");
    let error = BoundListener::bind(&address, 1, 16).expect_err("in use");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    drop(live);
    assert!(!path.exists(), "the file goes with the listener");
    fs::write(&path, "precious").expect("a file");
    assert!(BoundListener::bind(&address, 1, 16).is_err());
    assert!(path.exists(), "a file that is not a socket is left alone");
}
