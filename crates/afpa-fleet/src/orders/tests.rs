use super::*;

fn purge(path: &str) -> Order {
    Order::Purge { arguments: format!("path={path}") }
}

fn deny(prefix: &str, denied: bool) -> Order {
    Order::Deny { prefix: prefix.to_owned(), denied }
}

#[test]
fn an_order_waits_until_the_log_has_it() {
    let left = vec![Queued::new("old-1".to_owned(), purge("/old"))];
    let mut orders = Orders::new("new".to_owned(), left);
    let number = orders.take(purge("/a")).unwrap();
    assert_eq!(orders.fate(number), Some((&purge("/a"), &Fate::Queued)));
    let ids: Vec<_> = orders.first(Log::Purges, 9).into_iter().map(|queued| queued.id).collect();
    assert_eq!(ids, ["old-1", "new-1"]);
    let fate = Fate::Logged(Position { log: 1, sequence: 2 });
    orders.settle("new-1", fate.clone());
    orders.settle("new-1", fate.clone());
    assert_eq!(orders.fate(number), Some((&purge("/a"), &fate)));
    assert_eq!(orders.count(), 1);
    assert_eq!(orders.fate(9), None);
}

#[test]
fn orders_that_others_cannot_know_are_known() {
    let mut orders = Orders::new("a".to_owned(), Vec::new());
    let at = |log, sequence| Position { log, sequence };
    assert!(!orders.waits(Log::Purges) && orders.logged().is_none());
    for path in ["/1", "/2", "/3"] {
        orders.take(purge(path)).unwrap();
    }
    orders.settle("a-2", Fate::Logged(at(1, 9)));
    orders.settle("a-1", Fate::Logged(at(1, 8)));
    assert_eq!((orders.waits(Log::Purges), orders.logged()), (true, Some(at(1, 9))));
    orders.settle("a-3", Fate::Logged(at(2, 1)));
    assert_eq!((orders.waits(Log::Purges), orders.logged()), (false, Some(at(2, 1))));
    orders.take(purge("/4")).unwrap();
    orders.settle("a-4", Fate::Refused { why: "too long".to_owned() });
    assert!(orders.waits(Log::Purges) && orders.has_lost(), "for good");
}

#[test]
fn the_queue_and_the_memory_have_bounds() {
    let mut orders = Orders::new("a".to_owned(), Vec::new());
    for number in 0..MOST_WAITING {
        orders.take(purge(&format!("/{number}"))).unwrap();
    }
    let full = |again| Err::<u64, _>(Full { waiting: MOST_WAITING, again });
    assert_eq!(orders.take(purge("/")), full(false));
    assert_eq!(orders.take(purge("/")), full(true), "no news");
    assert_eq!(orders.fates.len(), MOST_FATES);
    assert!(orders.take(deny("192.0.2.1", true)).is_ok(), "bans have a queue of their own");
    let left = (0..2).map(|number| Queued::new(format!("old-{number}"), purge("/")));
    assert!(!orders.take_in(left.collect()), "no room");
    assert_eq!(orders.count(), MOST_WAITING + 1);
}

fn logged(sequence: u64) -> Fate {
    Fate::Logged(Position { log: 1, sequence })
}

#[test]
fn an_equal_order_waits_once_unless_it_may_be_under_way() {
    let mut orders = Orders::new("a".to_owned(), Vec::new());
    for number in 1..=BATCH {
        orders.take(purge(&format!("/{number}"))).unwrap();
    }
    assert_eq!(orders.take(purge("/1")), Ok(65), "the first may be in the log before");
    assert_eq!(orders.take(purge("/1")), Ok(65));
    assert_eq!(orders.take_change(purge("/1")), Ok(()));
    assert_eq!(orders.count(), BATCH + 1);
    orders.settle("a-1", logged(1));
    assert_eq!(orders.take(purge("/1")), Ok(66), "the other one may be under way now");
    orders.settle("a-65", logged(2));
    assert_eq!(orders.fate(65), Some((&purge("/1"), &logged(2))));
    assert_eq!(orders.fate(66), Some((&purge("/1"), &Fate::Queued)));
    orders.take_change(purge("/change")).unwrap();
    assert_eq!(orders.fate(67), None, "nobody asks");
    assert_eq!(orders.take(purge("/change")), Ok(68), "somebody does");
    for number in 69..=72 {
        let denied = number % 2 == 0;
        assert_eq!(orders.take(deny("::1", denied)), Ok(number), "the last one counts");
    }
}

#[test]
fn changes_leave_room_for_orders_of_somebody() {
    let mut orders = Orders::new("a".to_owned(), Vec::new());
    for _ in 0..MOST_WAITING {
        orders.take_change(purge("/cart")).unwrap();
    }
    assert_eq!(orders.count(), BATCH + 1, "equal ones wait once");
    let mut number = 0;
    let full = loop {
        number += 1;
        if let Err(full) = orders.take_change(purge(&format!("/{number}"))) {
            break full;
        }
    };
    assert_eq!(full, Full { waiting: MOST_WITH_CHANGES, again: false });
    assert_eq!(orders.take_change(purge("/x")), Err(Full { again: true, ..full }));
    assert_eq!(orders.take_change(purge("/cart")), Ok(()), "an equal one waits");
    assert!(orders.has_lost() && orders.take(purge("/y")).is_ok());
    for queued in orders.waiting().cloned().collect::<Vec<_>>() {
        orders.settle(&queued.id, logged(1));
    }
    assert!(orders.last.is_empty());
    for number in 0..MOST_WITH_CHANGES {
        orders.take_change(purge(&format!("/{number}"))).unwrap();
    }
    assert_eq!(orders.take_change(purge("/x")), Err(full), "that is news again");
}

#[test]
fn a_purge_of_everything_makes_up_for_lost_orders() {
    let mut orders = Orders::new("a".to_owned(), Vec::new());
    let everything = || Order::Purge { arguments: "path=%2F&below=yes".to_owned() };
    orders.take(purge("/1")).unwrap();
    orders.take(everything()).unwrap();
    orders.settle("a-1", Fate::Refused { why: "too long".to_owned() });
    orders.settle("a-2", logged(1));
    assert!(orders.has_lost(), "it was given before");
    orders.take(purge("/3")).unwrap();
    orders.settle("a-3", logged(2));
    assert!(orders.has_lost(), "it drops one answer");
    orders.take(everything()).unwrap();
    assert!(orders.has_lost(), "the log does not have it");
    orders.settle("a-4", logged(3));
    assert!(!orders.waits(Log::Purges));
    assert_eq!(orders.logged(), Some(Position { log: 1, sequence: 3 }));
    for number in 0..=BATCH {
        orders.take(purge(&format!("/more/{number}"))).unwrap();
    }
    let waiting = orders.take(everything());
    assert_eq!(orders.take(everything()), waiting);
    orders.settle("a-5", Fate::Refused { why: "too long".to_owned() });
    assert_ne!(orders.take(everything()), waiting, "that one was given before");
    for narrow in ["path=/", "below=yes", "path=/&below=yes&soft=yes", "path=/a&below=yes"] {
        assert!(!is_of_everything(narrow), "{narrow}");
    }
    assert!(!is_of_everything("host=a.test&path=/&below=yes") && !is_of_everything(""));
}

#[test]
fn a_machine_that_has_just_begun_asks_nobody_before_it_has_caught_up() {
    let at = |log, sequence| Position { log, sequence };
    let mut orders = Orders::new("a".to_owned(), Vec::new());
    orders.begin(at(7, 9));
    let asks = |orders: &Orders, place| {
        let (logged, waits) = (orders.logged(), orders.waits(Log::Purges));
        crate::owners::Footing { at: Some(place), logged, waits }.asks()
    };
    assert_eq!(asks(&orders, at(7, 8)), None, "one of the process before may come");
    assert_eq!(asks(&orders, at(7, 9)), Some(at(7, 9)));
    orders.begin(at(7, 12));
    assert_eq!(asks(&orders, at(7, 10)), Some(at(7, 10)), "it has heard of its own ones since");
    assert_eq!(asks(&orders, at(8, 0)), Some(at(8, 0)), "all was dropped since");
}

#[test]
fn one_order_for_a_prefix_is_under_way_at_a_time() {
    let mut orders = Orders::new("a".to_owned(), Vec::new());
    for (prefix, denied) in [("192.0.2.1", true), ("192.0.2.1", false), ("::1", true)] {
        orders.take(deny(prefix, denied)).unwrap();
    }
    orders.take(purge("/")).unwrap();
    let ids = |orders: &Orders, log| {
        orders.first(log, 9).into_iter().map(|queued| queued.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&orders, Log::Bans), ["a-1", "a-3"]);
    assert_eq!(ids(&orders, Log::Purges), ["a-4"]);
    orders.settle("a-1", Fate::Refused { why: "too long".to_owned() });
    assert_eq!(ids(&orders, Log::Bans), ["a-2", "a-3"]);
}

#[test]
fn an_order_to_deny_that_the_log_shows_does_not_wait_any_more() {
    let at = Position { log: 1, sequence: 4 };
    let left = vec![Queued::new("old-7".to_owned(), deny("::7", true))];
    let mut orders = Orders::new("a".to_owned(), left);
    for denied in [true, false] {
        orders.take(deny("::1", denied)).unwrap();
    }
    for id in ["b-1", "a-1", "a-1", "old-7", "a-9"] {
        orders.shown(Some(id.to_owned()), &deny("::9", true), at);
    }
    assert_eq!(orders.fate(1), Some((&deny("::1", true), &Fate::Logged(at))));
    let waiting: Vec<_> = orders.waiting().map(|queued| queued.id.as_str()).collect();
    assert_eq!(waiting, ["a-2"], "it was given later");
}

#[test]
fn an_order_that_another_one_has_overtaken_is_not_sent_again() {
    let at = |sequence| Position { log: 1, sequence };
    let mut orders = Orders::new("a".to_owned(), Vec::new());
    for prefix in ["::1", "::2", "::3", "::4"] {
        orders.take(deny(prefix, true)).unwrap();
    }
    let waiting =
        |orders: &Orders| orders.waiting().map(|queued| queued.id.clone()).collect::<Vec<_>>();
    orders.shown(Some("b-1".to_owned()), &deny("::2", false), at(9));
    for id in ["a-1", "a-2", "a-3"] {
        assert!(orders.attempt(id, at(9)) && !orders.attempt(id, at(20)), "the first counts");
    }
    // The log had a-1, and its acknowledgement was lost; b-2 has deleted it. No other one can be later than those here.
    orders.shown(Some("b-2".to_owned()), &deny("::1", false), at(11));
    orders.shown(None, &deny("::4", false), at(12));
    assert_eq!(waiting(&orders).len(), 4, "it may be acknowledged still");
    orders.not_sent("a-3");
    orders.shown(None, &deny("::3", false), at(13));
    orders.settle_overtaken();
    assert_eq!(waiting(&orders), ["a-2", "a-3", "a-4"]);
    assert_eq!(orders.fate(1).unwrap().1, &Fate::Logged(at(11)));
    orders.settle("a-2", logged(14));
    assert!(orders.take(deny("::2", false)) == Ok(5) && orders.attempt("a-5", at(13)));
    orders.shown(Some("a-2".to_owned()), &deny("::2", true), at(14));
    orders.settle_overtaken();
    assert_eq!(waiting(&orders), ["a-3", "a-4", "a-5"], "its own one before is not later");
    let anew = Position { log: 2, sequence: 1 };
    orders.shown(None, &deny("::2", true), anew);
    orders.settle_overtaken();
    assert_eq!(waiting(&orders), ["a-3", "a-4"]);
}

#[test]
fn an_order_to_deny_has_the_place_of_the_last_one_that_was_read() {
    let at = |log, sequence| Position { log, sequence };
    let mut orders = Orders::new("a".to_owned(), Vec::new());
    for prefix in ["::1", "::2"] {
        orders.take(deny(prefix, true)).unwrap();
    }
    let replaces = |orders: &Orders, id: &str, log| {
        let queued = orders.waiting().find(|queued| queued.id == id).unwrap();
        orders.replaces(queued, log)
    };
    assert_eq!(replaces(&orders, "a-1", 1), Some(0));
    orders.shown(Some("b-1".to_owned()), &deny("::1", false), at(1, 7));
    assert_eq!((replaces(&orders, "a-1", 1), replaces(&orders, "a-2", 1)), (Some(7), Some(0)));
    assert_eq!(replaces(&orders, "a-1", 2), Some(0), "another log");
    assert!(orders.attempt("a-1", at(1, 7)));
    orders.was_behind("a-1", Some(7), true);
    assert!(orders.waiting().next().unwrap().waits_for_log());
    assert_eq!(replaces(&orders, "a-1", 1), None, "somebody has taken it out of the log");
    orders.shown(Some("b-2".to_owned()), &deny("::1", false), at(1, 8));
    assert_eq!(replaces(&orders, "a-1", 1), Some(8));
    assert!(orders.attempt("a-1", at(1, 8)), "the log cannot have it yet");
    orders.was_behind("a-1", Some(8), false);
    assert!(!orders.attempt("a-1", at(1, 9)), "the first attempt counts");
    orders.settle("a-1", logged(10));
    orders.take(deny("::1", false)).unwrap();
    assert_eq!(replaces(&orders, "a-3", 1), Some(10), "its own one before, which was not read");
    orders.shown(Some("b-2".to_owned()), &deny("::2", true), at(1, 9));
    orders.shown_strange("::2".to_owned(), at(1, 11));
    assert_eq!(replaces(&orders, "a-2", 1), Some(11));
}

#[test]
fn an_order_left_by_a_process_is_judged_by_what_the_log_has_shown_before() {
    let at = |sequence| Position { log: 1, sequence };
    let left = |number: u32, prefix, since: Option<u64>| Queued {
        since: since.map(at),
        ..Queued::new(format!("old-{number}"), deny(prefix, true))
    };
    let mut orders = Orders::new("new".to_owned(), Vec::new());
    for (id, prefix, sequence) in [("old-1", "::1", 10), ("b-1", "::2", 11), ("b-2", "::3", 8)] {
        orders.shown(Some(id.to_owned()), &deny(prefix, false), at(sequence));
    }
    let queue = vec![
        left(1, "::1", Some(10)),
        left(2, "::2", Some(9)),
        left(3, "::3", Some(9)),
        left(4, "::2", None),
    ];
    let text = serde_json::to_string(&queue).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Queued>>(&text).unwrap(), queue, "a file keeps it");
    assert!(orders.take_in(queue));
    orders.settle_overtaken();
    let waiting: Vec<_> = orders.waiting().map(|queued| queued.id.as_str()).collect();
    assert_eq!(waiting, ["old-3", "old-4"], "the others are there, or were");
}

#[test]
fn the_orders_of_the_process_before_come_in_once_and_behind_none_that_is_newer() {
    let queued = |id: &str, order| Queued::new(id.to_owned(), order);
    let old = |number: u32, order| queued(&format!("old-{number}"), order);
    let left = vec![old(1, deny("::1", true)), old(2, purge("/2"))];
    let mut orders = Orders::new("new".to_owned(), left.clone());
    orders.settle("old-1", Fate::Logged(Position { log: 1, sequence: 1 }));
    orders.take(deny("::2", false)).unwrap();
    let more = [old(3, deny("::1", false)), old(4, deny("::2", true)), old(5, purge("/5"))];
    for _ in 0..2 {
        assert!(orders.take_in([&left[..], &more].concat()));
        let ids: Vec<_> = orders.waiting().map(|queued| queued.id.as_str()).collect();
        assert_eq!(ids, ["old-2", "old-5", "new-1", "old-3"]);
    }
}
