//! All entries of a map of the kernel's.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::libbpf_sys::{bpf_map_batch_opts, bpf_map_lookup_batch};
use libbpf_rs::{MapCore, MapHandle};

/// Keys and values, one behind the other.
#[derive(Debug)]
pub(crate) struct Entries {
    keys: Vec<u8>,
    values: Vec<u8>,
    sizes: (usize, usize),
}

impl Entries {
    /// The entries of a hash table. Memory for all that it may have is asked for, and what stays empty is not touched.
    ///
    /// # Errors
    ///
    /// A table that cannot be read to its end is not an empty one. The iterators of libbpf-rs end at an error as they do
    /// behind the last entry.
    pub(crate) fn of(map: &MapHandle) -> libbpf_rs::Result<Self> {
        let sizes = (map.key_size() as usize, map.value_size() as usize);
        let most = map.max_entries() as usize;
        let mut all = Self { keys: Vec::new(), values: Vec::new(), sizes };
        let (mut at, mut begun) = (vec![0; sizes.0.max(size_of::<u64>())], false);
        loop {
            let (keys, values) = (vec![0; most * sizes.0], vec![0; most * sizes.1]);
            let mut batch = Self { keys, values, sizes };
            let is_last = batch.fill(map, &mut at, begun, most)?;
            if begun {
                all.keys.append(&mut batch.keys);
                all.values.append(&mut batch.values);
            } else {
                all = batch;
            }
            if is_last {
                return Ok(all);
            }
            begun = true;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.keys.chunks_exact(self.sizes.0).zip(self.values.chunks_exact(self.sizes.1))
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len() / self.sizes.0
    }

    /// Up to `most` entries behind `at`, which moves. Whether they are the last ones.
    fn fill(
        &mut self,
        map: &MapHandle,
        at: &mut [u8],
        begun: bool,
        most: usize,
    ) -> io::Result<bool> {
        const NO_ENTRY: i32 = 2;
        let options = bpf_map_batch_opts {
            sz: size_of::<bpf_map_batch_opts>() as _,
            ..bpf_map_batch_opts::default()
        };
        let mut count = most as u32;
        let place = at.as_mut_ptr();
        let result = loop {
            // JUSTIFICATION: the iterator of libbpf-rs hides errors.
            // SAFETY: keys and values have room for `count` entries, the place for that of any table, and all outlive the call.
            let result = unsafe {
                bpf_map_lookup_batch(
                    map.as_fd().as_raw_fd(),
                    if begun { place.cast() } else { std::ptr::null_mut() },
                    place.cast(),
                    self.keys.as_mut_ptr().cast(),
                    self.values.as_mut_ptr().cast(),
                    &mut count,
                    &options,
                )
            };
            let error = io::Error::from_raw_os_error(-result);
            match result {
                0.. => break Ok(false),
                _ if error.kind() == io::ErrorKind::Interrupted => count = most as u32,
                _ if error.raw_os_error() == Some(NO_ENTRY) => break Ok(true),
                _ => break Err(error),
            }
        };
        self.keys.truncate(count as usize * self.sizes.0);
        self.values.truncate(count as usize * self.sizes.1);
        result
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::libbpf_sys::bpf_map_create_opts;
    use libbpf_rs::{MapFlags, MapType};

    use super::*;

    fn map(kind: MapType, key_size: u32) -> Option<MapHandle> {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            ..bpf_map_create_opts::default()
        };
        let map = MapHandle::create(kind, Some("entries"), key_size, 8, 100, &options);
        map.inspect_err(|error| println!("SKIP: no map can be made: {error}")).ok()
    }

    #[test]
    fn a_table_that_cannot_be_read_is_not_an_empty_one() {
        let Some(table) = map(MapType::Hash, 4) else { return };
        assert_eq!(Entries::of(&table).expect("read").len(), 0);
        for number in 0..100_u64 {
            let key = (number as u32).to_ne_bytes();
            table.update(&key, &number.to_ne_bytes(), MapFlags::ANY).expect("room");
        }
        let all = Entries::of(&table).expect("read");
        let mut numbers: Vec<u64> = all
            .iter()
            .map(|(_, value)| u64::from_ne_bytes(value.try_into().expect("eight bytes")))
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
        // A queue has no keys, so the kernel refuses to list it.
        let Some(queue) = map(MapType::Queue, 0) else { return };
        assert!(Entries::of(&queue).is_err());
    }
}
