use std::time::Duration;

use super::*;

fn group(title: &str, servers: &[&str], seconds: u64) -> Group {
    let load = Load {
        connections: 64,
        warm_up: Duration::from_millis(200),
        duration: Duration::from_secs(seconds),
        persistent: true,
        rate: None,
    };
    let workload = afpa_generator::family("webstone", &[512], true).unwrap().remove(0);
    Group {
        title: title.into(),
        bed: BedPlan::named("steered", (0, 1), None).unwrap(),
        tasks: vec![Task { workload, load, generator: "tc".into() }],
        servers: servers.iter().map(|name| (*name).to_owned()).collect(),
        closing: Vec::new(),
    }
}

fn plan() -> Plan {
    let groups = vec![group("first", &["a", "b", "a (again)"], 2), group("second", &["a"], 2)];
    let (left_out, done) = (Vec::new(), Done::default());
    Plan { groups, axes: Vec::new(), rounds: 2, look_inside: false, left_out, done }
}

#[test]
fn rounds_are_interleaved_and_rotate() {
    let plan = plan();
    let order: Vec<_> = plan.sessions().iter().map(|s| (s.round, s.server)).collect();
    let first = [(1, "a"), (1, "b"), (1, "a (again)"), (1, "a")];
    let second = [(2, "b"), (2, "a (again)"), (2, "a"), (2, "a")];
    assert_eq!(order, [first, second].concat());
    assert_eq!(plan.sessions()[2].name(), "a");
}

#[test]
fn a_plan_is_shortened_until_it_fits() {
    let mut plan = plan();
    assert_eq!(plan.lasts().as_millis(), 3600 * 4 * 2);
    plan.fit(Duration::from_millis(20_800), Duration::from_millis(500)).unwrap();
    assert_eq!((plan.groups.len(), plan.left_out.len()), (2, 0));
    assert!(plan.lasts() <= Duration::from_millis(20_801), "{:?}", plan.lasts());
    let one = plan.groups[0].tasks[0].load.duration;
    assert!((one.as_secs_f64() - 1.0).abs() < 0.01, "{one:?}");
}

#[test]
fn more_time_never_leaves_more_out() {
    for seconds in 14..30 {
        let mut plan = plan();
        plan.fit(Duration::from_secs(seconds), Duration::from_millis(500)).unwrap();
        let expected = if seconds < 17 { 1 } else { 2 };
        assert_eq!(plan.groups.len(), expected, "{seconds} s");
    }
}

#[test]
fn what_does_not_fit_is_left_out_aloud() {
    let mut plan = plan();
    plan.fit(Duration::from_secs(18), Duration::from_millis(900)).unwrap();
    assert_eq!(plan.left_out, ["second: no time for it"]);
    assert!(plan.lasts() <= Duration::from_secs(18));
    assert!(plan.fit(Duration::from_secs(1), Duration::from_millis(900)).is_err());
}

#[test]
fn what_is_left_has_the_time_of_what_went() {
    let mut plan = plan();
    plan.groups[1] = group("second", &["a", "b", "c", "d", "e", "f"], 2);
    let alone = 3600 * 3 * 2;
    plan.fit(Duration::from_millis(alone + 1), Duration::from_millis(900)).unwrap();
    assert_eq!((plan.groups.len(), plan.lasts().as_millis()), (1, u128::from(alone)));
}

#[test]
fn what_is_there_takes_no_time_and_is_not_left_out() {
    let mut plan = plan();
    let mut other = group("third", &["a", "b"], 2);
    other.tasks[0].load.connections = 7;
    plan.groups[1] = group("second", &["c"], 2);
    plan.groups.push(other);
    let turns = ["a", "b", "a (again)"].into_iter().flat_map(|server| {
        [1, 2].map(|round| {
            let mut turn = crate::summary::tests::turn(server, round, 10.0);
            turn.point = plan.groups[0].tasks[0].point(&plan.groups[0].bed);
            turn.measured.seconds = 0.25;
            turn
        })
    });
    plan.done = Done::of(&turns.collect::<Vec<_>>(), &[]);
    // The second group has the measurements of the first one, with another server.
    let second = (1600 + 250) * 2;
    plan.fit(Duration::from_millis(second + 1), Duration::from_millis(900)).unwrap();
    let titles: Vec<&str> = plan.groups.iter().map(|group| group.title.as_str()).collect();
    assert_eq!(titles, ["first", "second"]);
    assert_eq!(plan.lasts().as_millis(), u128::from(second));
    assert_eq!(plan.left_out, ["third: no time for it"]);
}

#[test]
fn who_closes_does_nothing_over_persistent_connections() {
    let mut group = group("first", &["howl", "a"], 2);
    group.closing = vec!["howl".into()];
    let session = |server| Session { group: &group, server, round: 1 };
    let done = Done::default();
    assert_eq!(session("howl").lasts(&done), Duration::ZERO);
    assert_eq!(session("a").lasts(&done).as_millis(), 3600);
}

#[test]
fn rounds_go_before_experiments_and_no_further_than_three() {
    let mut plan = Plan { rounds: 5, ..plan() };
    // Four sessions of a second and 900 ms in each round.
    plan.fit(Duration::from_millis(4 * 2600 * 3 + 100), Duration::from_millis(900)).unwrap();
    assert_eq!((plan.rounds, plan.groups.len()), (3, 2));
    assert_eq!(plan.left_out, ["3 rounds of 5: no time for more"]);
    let mut short = Plan { rounds: 5, ..self::plan() };
    short.fit(Duration::from_millis(4 * 2000 * 3), Duration::from_millis(900)).unwrap();
    assert_eq!((short.rounds, short.groups.len()), (3, 1));
}

#[test]
fn the_last_experiment_loses_its_looks_and_then_its_last_servers() {
    let only = group("only", &["a", "b", "c", "d", "a (again)"], 2);
    let look_inside = true;
    let mut plan =
        Plan { groups: vec![only], axes: vec![group("held", &["a"], 2)], look_inside, ..plan() };
    let session = 1600 + 900;
    plan.fit(Duration::from_millis(session * 4 * 2 + 1), Duration::from_millis(900)).unwrap();
    assert_eq!(plan.groups[0].servers, ["a", "b", "c", "a (again)"]);
    assert!(plan.axes.is_empty() && !plan.look_inside);
    let expected = ["looks inside at held rates", "looks inside", "d in only"];
    assert_eq!(
        plan.left_out,
        expected.map(|what| {
            let it = if what.starts_with("looks") { "them" } else { "it" };
            format!("{what}: no time for {it}")
        })
    );
    assert!(plan.fit(Duration::from_secs(5), Duration::from_millis(900)).is_err());
    assert_eq!(plan.groups[0].servers, ["a", "b", "a (again)"], "two are what is compared");
}

#[test]
fn the_usual_servers_stay_longest_and_the_one_that_tells_the_noise_stays() {
    let servers = ["afpa", "afpa-copy", "afpa-kernel", "nginx", "sped", "mp", "nginx (again)"];
    let mut only = group("only", &servers, 2);
    let mut gone = Vec::new();
    while let Some(place) = super::time::least_important(&only.servers) {
        gone.push(only.servers.remove(place));
    }
    assert_eq!(gone, ["mp", "afpa-copy", "sped", "afpa-kernel"]);
    assert_eq!(only.servers, ["afpa", "nginx", "nginx (again)"]);
}
