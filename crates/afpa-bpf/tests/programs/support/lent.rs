//! Loaded programs that tests lend each other. The verifier takes a second of a processor for them, longer than most
//! tests; their maps are made as new in milliseconds.
#![allow(unreachable_pub)] // in private modules of two test crates

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use afpa_bpf::{FastPath, Programs, Settings, Unavailable};
use libbpf_rs::{Map, MapCore, MapFlags, MapType, RingBufferBuilder};

/// The settings that are compiled into programs, or that size their maps.
type Sizes = [u32; 12];

/// Programs whose maps are as new, the last that were left at the end.
static LEFT: Mutex<Vec<(Sizes, Programs)>> = Mutex::new(Vec::new());

/// So many of them are kept. Few tests want sizes of their own.
const MOST_LEFT: usize = 8;

/// A fast path over programs of this test's own, until it is dropped.
pub struct Lent {
    /// None when it is dropped.
    fast_path: Option<Arc<FastPath>>,
    /// None where other tests cannot use them.
    programs: Option<(Sizes, Programs)>,
}

impl Lent {
    /// Programs that a test before has left, or else newly loaded ones.
    pub fn new(settings: Settings) -> Result<Self, Unavailable> {
        if settings.keep_in.is_some() {
            let fast_path = Some(Arc::new(FastPath::load(settings)?));
            return Ok(Self { fast_path, programs: None });
        }
        let sizes = sizes(&settings);
        let programs = match take_left(&sizes) {
            Some(programs) => programs,
            None => Programs::load(&settings)?,
        };
        let fast_path = Some(Arc::new(FastPath::over(&programs, settings)?));
        Ok(Self { fast_path, programs: Some((sizes, programs)) })
    }
}

impl Deref for Lent {
    type Target = Arc<FastPath>;

    fn deref(&self) -> &Arc<FastPath> {
        self.fast_path.as_ref().expect("until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let last = self.fast_path.take().and_then(Arc::into_inner);
        let is_last = last.is_some();
        drop(last); // detaches: no program runs any more
        let Some((sizes, programs)) = self.programs.take() else { return };
        if !is_last || std::thread::panicking() {
            return;
        }
        programs.maps().for_each(|map| make_new(&map));
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() == MOST_LEFT {
            left.remove(0);
        }
        left.push((sizes, programs));
    }
}

fn sizes(of: &Settings) -> Sizes {
    [
        of.objects,
        of.ready_objects,
        of.pages,
        of.ready_pages,
        of.transfers,
        of.rtx_timers,
        of.flows,
        of.hosts,
        of.partial_heads,
        of.header_blocks,
        of.event_bytes,
        of.cookie_ignored,
    ]
}

fn take_left(sizes: &Sizes) -> Option<Programs> {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    let place = left.iter().rposition(|(of, _)| of == sizes)?;
    Some(left.remove(place).1)
}

/// Empties a map, or makes its values zero: the way in which the kernel makes it.
fn make_new(map: &Map<'_>) {
    let name = map.name().to_string_lossy().into_owned();
    let places = || (0..map.max_entries()).map(u32::to_ne_bytes);
    match map.map_type() {
        _ if name.contains(".rodata") => {}
        // Each entry is a socket's, and goes with it.
        MapType::SkStorage => {}
        MapType::Hash | MapType::LruHash | MapType::LpmTrie => {
            let keys: Vec<_> = map.keys().collect();
            for key in keys {
                map.delete(&key).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
        MapType::Array => {
            let places: Vec<_> = places().collect();
            for places in places.chunks(1024) {
                let zeros = vec![0; places.len() * map.value_size() as usize];
                let (count, any) = (places.len() as u32, MapFlags::ANY);
                map.update_batch(places.as_flattened(), &zeros, count, any, any)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
        MapType::PercpuArray => {
            let processors = libbpf_rs::num_possible_cpus().expect("a number");
            let zero = vec![vec![0; map.value_size() as usize]; processors];
            for place in places() {
                map.update_percpu(&place, &zero, MapFlags::ANY).expect("an entry of an array");
            }
        }
        MapType::ProgArray => places().for_each(|place| drop(map.delete(&place))),
        MapType::Queue => while let Ok(Some(_)) = map.lookup_and_delete(&[]) {},
        MapType::RingBuf => {
            let mut builder = RingBufferBuilder::new();
            builder.add(map, |_| 0).expect("a ring");
            builder.build().expect("a ring").consume().expect("its entries");
        }
        other => panic!("{name} is of a type that nobody empties yet: {other:?}"),
    }
}
