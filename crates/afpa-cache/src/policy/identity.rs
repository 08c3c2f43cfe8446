//! Identities of objects, and tables by identity.

use std::fmt;

/// Names one object (one version for one key) for as long as the cache runs.
///
/// The lower half is its *place*: that of another object once this one is gone, so that tables by place need no more rows
/// than there were objects at once. The upper half, the *term*, tells those apart that have had a place.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

/// A number below the most objects that were ever there at once.
pub(crate) type Place = u32;

impl ObjectId {
    fn new(place: Place, term: u32) -> ObjectId {
        ObjectId(u64::from(term) << 32 | u64::from(place))
    }

    pub(crate) fn place(self) -> Place {
        (self.0 & u64::from(u32::MAX)) as Place
    }

    fn term(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({}.{})", self.place(), self.term())
    }
}

/// Gives out identities. Free places come first.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    given: u32,
    places: Place,
    free: Vec<Place>,
}

impl Identities {
    /// An identity that was not given out before, or four billion ones ago at the least.
    pub(crate) fn give(&mut self) -> ObjectId {
        self.given = self.given.wrapping_add(1);
        let place = self.free.pop().unwrap_or_else(|| {
            self.places += 1;
            self.places - 1
        });
        ObjectId::new(place, self.given)
    }

    /// Nothing has this identity any more.
    pub(crate) fn take_back(&mut self, id: ObjectId) {
        self.free.push(id.place());
    }

    /// Identities that were not taken back.
    #[cfg(any(test, debug_assertions))]
    pub(crate) fn in_use(&self) -> usize {
        self.places as usize - self.free.len()
    }
}

/// A table with a row for each identity, by place. It has memory for the neighbourhoods in which a row is in use.
pub(crate) struct ByPlace<T> {
    chunks: Vec<Option<Box<Chunk<T>>>>,
    len: usize,
}

/// Neighbouring rows, of which at least one is in use. Terms lie apart, so that none has padding behind it.
struct Chunk<T> {
    rows: [Option<T>; ROWS],
    terms: [u32; ROWS],
    used: u32,
}

/// A row in use.
struct Row<T> {
    term: u32,
    value: T,
}

/// Few, so that little is wasted where only some objects have a row, as in the policy over file-system objects.
const ROWS: usize = 32;

impl<T> Default for ByPlace<T> {
    fn default() -> Self {
        ByPlace { chunks: Vec::new(), len: 0 }
    }
}

impl<T> ByPlace<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, id: ObjectId) -> Option<&T> {
        self.row(id.place()).filter(|row| row.term == id.term()).map(|row| row.value)
    }

    pub(crate) fn get_mut(&mut self, id: ObjectId) -> Option<&mut T> {
        let row = self.row_mut(id.place()).filter(|row| row.term == id.term());
        row.map(|row| row.value)
    }

    /// The row of the identity that has this place now.
    pub(crate) fn at(&self, place: Place) -> Option<&T> {
        self.row(place).map(|row| row.value)
    }

    pub(crate) fn at_mut(&mut self, place: Place) -> Option<&mut T> {
        self.row_mut(place).map(|row| row.value)
    }

    /// The identity that has this place.
    pub(crate) fn id_at(&self, place: Place) -> Option<ObjectId> {
        self.row(place).map(|row| ObjectId::new(place, row.term))
    }

    /// Puts something at a place that is free.
    pub(crate) fn insert(&mut self, id: ObjectId, value: T) {
        let (chunk, at) = split(id.place());
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let Some(chunk) = self.chunks.get_mut(chunk) else { return };
        let chunk = chunk.get_or_insert_with(Box::default);
        let Some((row, term)) = chunk.rows.get_mut(at).zip(chunk.terms.get_mut(at)) else { return };
        debug_assert!(row.is_none(), "{id:?} has a place that is not free");
        if row.is_none() {
            (*row, *term) = (Some(value), id.term());
            chunk.used += 1;
            self.len += 1;
        }
    }

    pub(crate) fn remove(&mut self, id: ObjectId) -> Option<T> {
        self.get(id)?;
        let (chunk, row) = split(id.place());
        let place = self.chunks.get_mut(chunk)?;
        let chunk = place.as_mut()?;
        let removed = chunk.rows.get_mut(row)?.take()?;
        chunk.used -= 1;
        self.len -= 1;
        if chunk.used == 0 {
            *place = None;
        }
        Some(removed)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ObjectId, &T)> + Clone {
        let chunks = (0..).step_by(ROWS).zip(&self.chunks);
        let chunks = chunks.filter_map(|(first, chunk)| Some((first, chunk.as_ref()?)));
        chunks.flat_map(|(first, chunk)| {
            (first..).zip(chunk.rows.iter().zip(&chunk.terms)).filter_map(|(place, (row, term))| {
                Some((ObjectId::new(place, *term), row.as_ref()?))
            })
        })
    }

    fn row(&self, place: Place) -> Option<Row<&T>> {
        let (chunk, at) = split(place);
        let chunk = self.chunks.get(chunk)?.as_ref()?;
        Some(Row { term: *chunk.terms.get(at)?, value: chunk.rows.get(at)?.as_ref()? })
    }

    fn row_mut(&mut self, place: Place) -> Option<Row<&mut T>> {
        let (chunk, at) = split(place);
        let chunk = self.chunks.get_mut(chunk)?.as_mut()?;
        Some(Row { term: *chunk.terms.get(at)?, value: chunk.rows.get_mut(at)?.as_mut()? })
    }
}

impl<T> Default for Chunk<T> {
    fn default() -> Self {
        Chunk { rows: [const { None }; ROWS], terms: [0; ROWS], used: 0 }
    }
}

/// The chunk of a place, and the row in it.
fn split(place: Place) -> (usize, usize) {
    (place as usize / ROWS, place as usize % ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_again_and_its_former_holder_is_told_apart() {
        let mut identities = Identities::default();
        let (first, second) = (identities.give(), identities.give());
        let mut rows = ByPlace::default();
        rows.insert(first, "first");
        rows.insert(second, "second");
        assert_eq!(rows.remove(first), Some("first"));
        identities.take_back(first);
        let third = identities.give();
        assert_eq!((third.place(), third == first), (first.place(), false));
        rows.insert(third, "third");
        assert_eq!(rows.get(first), None);
        assert_eq!(rows.get_mut(first), None);
        assert_eq!(rows.remove(first), None);
        assert_eq!((rows.get(third), rows.at(third.place())), (Some(&"third"), Some(&"third")));
        assert_eq!(rows.id_at(third.place()), Some(third));
        assert_eq!(rows.iter().collect::<Vec<_>>(), [(third, &"third"), (second, &"second")]);
        assert_eq!((rows.len(), identities.in_use()), (2, 2));
    }

    #[test]
    fn memory_is_taken_where_there_is_something() {
        let mut rows = ByPlace::default();
        let far = ObjectId(1_000_000);
        for id in [ObjectId(0), far, ObjectId(1)] {
            rows.insert(id, ());
        }
        let chunks = |rows: &ByPlace<()>| rows.chunks.iter().flatten().count();
        assert_eq!((rows.len(), chunks(&rows)), (3, 2));
        assert_eq!(rows.remove(far), Some(()));
        assert_eq!((rows.len(), chunks(&rows)), (2, 1));
        assert_eq!(rows.iter().map(|(id, ())| id.0).collect::<Vec<_>>(), [0, 1]);
    }
}
