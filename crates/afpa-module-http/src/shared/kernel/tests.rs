use super::*;

fn policy(change: impl FnOnce(&mut CachePolicy)) -> CachePolicy {
    let mut policy = CachePolicy::default();
    change(&mut policy);
    policy
}

#[track_caller]
fn matter(policy: &CachePolicy, believed: bool, expected: Option<&[&str]>) {
    let fields = fields_that_matter(policy, &exchange::Settings::default(), believed);
    let fields = fields.as_ref().map(|fields| fields.iter().map(|name| &**name).collect());
    assert_eq!(fields, expected.map(<[&str]>::to_vec), "{policy:?}");
}

#[test]
fn a_field_that_user_mode_would_look_at_is_left_to_it() {
    let named = |name: &str| {
        let name = name.to_owned();
        policy(|policy| policy.bypass_fields = vec![name])
    };
    matter(&policy(|_| ()), false, Some(&[]));
    matter(&policy(|_| ()), true, Some(&key::MARKS));
    matter(&policy(|policy| policy.obey_clients = true), false, Some(&["cache-control", "pragma"]));
    let listed = vec!["session*".to_owned()];
    matter(&policy(|policy| policy.bypass_cookies = listed.clone()), false, Some(&["cookie"]));
    matter(&policy(|policy| policy.cookies = listed), false, Some(&["cookie"]));
    matter(&named("X-Debug"), false, Some(&["x-debug"]));
}

#[test]
fn what_the_programs_cannot_be_told_keeps_answers_out_of_the_kernel() {
    let long = "x".repeat(NAME_MAX + 1);
    for name in ["x-*", "Accept-Encoding", "connection", &long] {
        let name = name.to_owned();
        matter(&policy(|policy| policy.bypass_fields = vec![name]), false, None);
    }
    matter(&policy(|policy| policy.status_field = true), false, None);
    matter(&policy(|policy| policy.in_kernel = false), false, None);
}
