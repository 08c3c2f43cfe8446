//! Identities of objects, and tables by identity.

use std::fmt;

/// Names one object (one version for one key) for as long as the cache runs.
///
/// The lower half is its *place*: that of another object once this one is gone, so that tables by place are as short as
/// there are objects. The upper half tells the objects of a place apart.
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
    #[cfg(debug_assertions)]
    pub(crate) fn in_use(&self) -> usize {
        self.places as usize - self.free.len()
    }
}

/// What there is for each identity: a table by place.
pub(crate) struct Slots<T> {
    slots: Vec<Option<Slot<T>>>,
    len: usize,
}

struct Slot<T> {
    term: u32,
    value: T,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { slots: Vec::new(), len: 0 }
    }
}

impl<T> Slots<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, id: ObjectId) -> Option<&T> {
        let slot = self.slots.get(id.place() as usize)?.as_ref()?;
        (slot.term == id.term()).then_some(&slot.value)
    }

    pub(crate) fn get_mut(&mut self, id: ObjectId) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.place() as usize)?.as_mut()?;
        (slot.term == id.term()).then_some(&mut slot.value)
    }

    /// What whoever has this place has.
    pub(crate) fn at(&self, place: Place) -> Option<&T> {
        Some(&self.slots.get(place as usize)?.as_ref()?.value)
    }

    pub(crate) fn at_mut(&mut self, place: Place) -> Option<&mut T> {
        Some(&mut self.slots.get_mut(place as usize)?.as_mut()?.value)
    }

    /// Who has this place.
    pub(crate) fn id_at(&self, place: Place) -> Option<ObjectId> {
        let slot = self.slots.get(place as usize)?.as_ref()?;
        Some(ObjectId::new(place, slot.term))
    }

    /// Puts something at a place that is free.
    pub(crate) fn insert(&mut self, id: ObjectId, value: T) {
        let place = id.place() as usize;
        while self.slots.len() <= place {
            self.slots.push(None);
        }
        if let Some(slot) = self.slots.get_mut(place) {
            let before = slot.replace(Slot { term: id.term(), value });
            debug_assert!(before.is_none(), "{id:?} has a place that is not free");
            self.len += usize::from(before.is_none());
        }
    }

    pub(crate) fn remove(&mut self, id: ObjectId) -> Option<T> {
        self.get(id)?;
        let slot = self.slots.get_mut(id.place() as usize)?.take()?;
        self.len -= 1;
        Some(slot.value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ObjectId, &T)> + Clone {
        (0..).zip(&self.slots).filter_map(|(place, slot)| {
            let Slot { term, value } = slot.as_ref()?;
            Some((ObjectId::new(place, *term), value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_again_and_its_former_holder_is_told_apart() {
        let mut identities = Identities::default();
        let (first, second) = (identities.give(), identities.give());
        let mut slots = Slots::default();
        slots.insert(first, "first");
        slots.insert(second, "second");
        assert_eq!(slots.remove(first), Some("first"));
        identities.take_back(first);
        let third = identities.give();
        assert_eq!((third.place(), third == first), (first.place(), false));
        slots.insert(third, "third");
        assert_eq!(slots.get(first), None);
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!((slots.get(third), slots.at(third.place())), (Some(&"third"), Some(&"third")));
        assert_eq!(slots.id_at(third.place()), Some(third));
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(third, &"third"), (second, &"second")]);
        assert_eq!((slots.len(), identities.in_use()), (2, 2));
    }
}
