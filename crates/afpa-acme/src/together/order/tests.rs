//! Machines that die, or sleep, before and after each step of an order: the next one goes on, there is one certificate, and
//! each gets it with its key.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::together::Kind;

/// More than an order has.
const STEPS: usize = 16;

/// Where a machine stops: before the effect of a step, or before it knows of it.
type Stop = (usize, bool);

#[derive(Default)]
struct World {
    orders: Vec<Stage>,
    /// That of the fleet's servers.
    record: OrderRecord,
    holder: u32,
    /// The record's key at the moment of each certificate.
    issued: Vec<String>,
    told: bool,
    by_program: usize,
    /// Machines that have stopped go on.
    is_awake: bool,
}

struct Machine<'w> {
    world: &'w RefCell<World>,
    number: u32,
    step: RefCell<usize>,
    stop: Option<Stop>,
    has_program: bool,
}

struct Placed {
    number: usize,
    stage: Stage,
}

impl Machine<'_> {
    async fn step<T>(&self, effect: impl FnOnce(&mut World) -> T) -> T {
        let step = self.step.replace_with(|step| *step + 1);
        self.pass((step, false)).await;
        let outcome = effect(&mut self.world.borrow_mut());
        self.pass((step, true)).await;
        outcome
    }

    async fn pass(&self, at: Stop) {
        let is_stop = self.stop == Some(at);
        poll_fn(|_| match is_stop && !self.world.borrow().is_awake {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
    }
}

impl Office for Machine<'_> {
    type Order = Placed;
    type Record = ();

    async fn place(&self) -> Result<Placed, AcmeError> {
        self.step(|world| {
            world.orders.push(Stage::Pending);
            Ok(Placed { number: world.orders.len() - 1, stage: Stage::Pending })
        })
        .await
    }

    async fn again(&self, url: &str) -> Result<Option<Placed>, AcmeError> {
        let number: usize = url.trim_start_matches("https://").parse().unwrap();
        self.step(|world| Ok(world.orders.get(number).map(|&stage| Placed { number, stage }))).await
    }

    fn url(&self, order: &Placed) -> String {
        format!("https://{}", order.number)
    }

    fn stage(&self, order: &mut Placed) -> Stage {
        order.stage
    }

    async fn proofs(&self, order: &mut Placed) -> Result<Vec<Proof>, AcmeError> {
        let place = order.number.to_string();
        let proof = Proof { kind: Kind::Response, place, answer: "proof".to_owned() };
        self.step(|_| Ok(vec![proof])).await
    }

    fn has_program(&self) -> bool {
        self.has_program
    }

    async fn set(&self, _: &[Proof]) -> Result<Vec<()>, AcmeError> {
        self.step(|world| {
            world.by_program += 1;
            Ok(vec![()])
        })
        .await
    }

    async fn unset(&self, _: Vec<()>) {
        self.step(|world| world.by_program = world.by_program.saturating_sub(1)).await;
    }

    async fn tell(&self, order: &mut Placed) -> Result<(), AcmeError> {
        let has_program = self.has_program;
        let number = order.number;
        self.step(|world| {
            if world.orders[number] != Stage::Pending {
                return;
            }
            let kept = world.record.order.as_ref().map(|order| order.proofs.clone());
            let is_shown = match has_program {
                true => world.by_program > 0,
                false => kept.is_some_and(|proofs| proofs[0].place == number.to_string()),
            };
            world.orders[number] = if is_shown { Stage::Ready } else { Stage::Over };
            world.told = true;
        })
        .await;
        Ok(())
    }

    async fn ready(&self, order: &mut Placed) -> Result<(), AcmeError> {
        let stage = self.step(|world| world.orders[order.number]).await;
        order.stage = stage;
        let refused =
            || AcmeError::NotOurs { name: "a.test".to_owned(), why: "no answer".to_owned() };
        if stage == Stage::Over { Err(refused()) } else { Ok(()) }
    }

    async fn finalize(&self, order: &mut Placed, _: &[u8]) -> Result<(), AcmeError> {
        self.step(|world| {
            if world.orders[order.number] != Stage::Ready {
                return Err(AcmeError::Silent(0));
            }
            world.orders[order.number] = Stage::Certified;
            let key = world.record.order.as_ref().map(|order| order.key.clone());
            world.issued.push(key.unwrap());
            Ok(())
        })
        .await
    }

    async fn chain(&self, _: &mut Placed) -> Result<String, AcmeError> {
        self.step(|_| Ok("CHAIN".to_owned())).await
    }
}

impl Desk for &Machine<'_> {
    fn holds(&self) -> bool {
        self.world.borrow().holder == self.number
    }

    async fn keep(&mut self, record: &OrderRecord) -> Result<(), AcmeError> {
        let (number, record) = (self.number, record.clone());
        self.step(|world| {
            if world.holder != number {
                return Err(AcmeError::Others("another machine has it".to_owned()));
            }
            world.record = record;
            Ok(())
        })
        .await
    }

    async fn seen(&self) {
        self.step(|_| ()).await;
    }
}

type Running<'w> = Pin<Box<dyn Future<Output = Result<String, AcmeError>> + 'w>>;

/// A machine takes the record over.
fn begin(world: &RefCell<World>, stop: Option<Stop>, has_program: bool) -> Running<'_> {
    let number = {
        let mut world = world.borrow_mut();
        world.holder += 1;
        world.holder
    };
    let machine = Machine { world, number, step: RefCell::default(), stop, has_program };
    Box::pin(async move {
        let mut record = world.borrow().record.clone();
        drive(&machine, &mut &machine, &mut record, &["a.test".to_owned()]).await
    })
}

/// As far as it comes.
fn run(running: &mut Running<'_>) -> Option<Result<String, AcmeError>> {
    match running.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

/// Orders that the authority has, and no record.
fn lost(world: &World) -> usize {
    let kept = world.record.order.as_ref().map(|order| order.url.clone());
    (0..world.orders.len()).filter(|n| kept != Some(format!("https://{n}"))).count()
}

fn check(world: &World, pem: &str) {
    assert_eq!(world.issued.len(), 1, "one certificate");
    assert_eq!(pem, format!("{}CHAIN", world.issued[0]), "with its own key");
    assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----"));
    let certified = world.orders.iter().filter(|stage| **stage == Stage::Certified).count();
    assert_eq!(certified, 1);
}

fn stops() -> impl Iterator<Item = Stop> + Clone {
    (0..STEPS).flat_map(|step| [(step, false), (step, true)])
}

#[test]
fn an_order_goes_on_after_two_deaths_at_any_steps() {
    let mut died_between = 0;
    for has_program in [false, true] {
        for first in stops() {
            for second in stops() {
                let world = RefCell::default();
                let mut orders = 1;
                let mut pem = None;
                for stop in [Some(first), Some(second), None] {
                    let mut running = begin(&world, stop, has_program);
                    pem = run(&mut running).map(|outcome| outcome.expect("it goes on"));
                    let dies = pem.is_none();
                    drop(running);
                    if dies && lost(&world.borrow()) == orders {
                        // Between the authority and the record: nobody knows the order, so nobody completes it.
                        orders += 1;
                        died_between += 1;
                    }
                    if !dies {
                        break;
                    }
                }
                let world = world.borrow();
                check(&world, &pem.expect("the third one is not stopped"));
                assert_eq!(world.orders.len(), orders, "{first:?} {second:?}");
            }
        }
    }
    assert!(died_between > 0);
}

#[test]
fn a_machine_that_was_asleep_at_any_step_certifies_nothing_more() {
    for stop in stops() {
        let world = RefCell::default();
        let mut sleeper = begin(&world, Some(stop), false);
        if run(&mut sleeper).is_some() {
            continue;
        }
        let pem = run(&mut begin(&world, None, false)).expect("it is not stopped");
        let pem = pem.unwrap_or_else(|error| panic!("{stop:?}: {error}"));
        world.borrow_mut().is_awake = true;
        // It gets the same certificate, or nothing.
        let woken = run(&mut sleeper).expect("it goes on");
        check(&world.borrow(), &woken.unwrap_or_else(|_| pem.clone()));
        check(&world.borrow(), &pem);
        assert!(world.borrow().orders.len() <= 2, "{stop:?}");
    }
}

#[test]
fn an_order_that_the_authority_has_refused_or_forgotten_is_followed_by_another() {
    for (has_program, is_forgotten) in [(false, true), (false, false), (true, false)] {
        let world = RefCell::new(World::default());
        drop(run(&mut begin(&world, Some((1, true)), has_program)));
        assert_eq!(lost(&world.borrow()), 0, "it is in the record");
        match is_forgotten {
            true => world.borrow_mut().orders.clear(),
            false => world.borrow_mut().orders[0] = Stage::Over,
        }
        let pem = run(&mut begin(&world, None, has_program)).unwrap().expect("another one");
        check(&world.borrow(), &pem);
    }
}

#[test]
fn a_refusal_takes_the_order_out_of_the_record_and_a_silence_does_not() {
    let world = RefCell::new(World { holder: 1, ..World::default() });
    let machine = |number| Machine {
        world: &world,
        number,
        step: RefCell::default(),
        stop: None,
        has_program: false,
    };
    let mut record = OrderRecord::default();
    let names = ["a.test".to_owned()];
    let one = machine(1);
    let mut running: Running<'_> = Box::pin(async {
        let outcome = drive(&one, &mut &one, &mut record, &names).await;
        outcome.map(|_| record.write())
    });
    assert!(run(&mut running).is_some_and(|done| done.is_ok()));
    drop(running);
    // Another machine has the record: nothing is placed.
    let orders = world.borrow().orders.len();
    let (two, mut record) = (machine(2), OrderRecord::default());
    let mut running: Running<'_> =
        Box::pin(async { drive(&two, &mut &two, &mut record, &names).await });
    assert!(matches!(run(&mut running), Some(Err(AcmeError::Others(_)))));
    assert_eq!(world.borrow().orders.len(), orders);
    drop(running);
    for (error, ends) in [
        (AcmeError::NotOurs { name: String::new(), why: String::new() }, true),
        (AcmeError::Certificate(String::new()), true),
        (AcmeError::Silent(1), false),
        (AcmeError::Others(String::new()), false),
    ] {
        assert_eq!(error.ends_order(), ends, "{error}");
    }
}
