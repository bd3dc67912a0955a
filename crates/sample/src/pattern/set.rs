//! A pattern set: its entries, the table of its keys, and its uses, which every edit updates.

use super::hash::Direction;
use super::store::{Store, check_lengths};
use super::texts::{Texts, View};
use super::uses::{Checked, How, Use};
use crate::text::read_int;
use crate::{Value, cast};

/// The required types of values, for the converters that output them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueKinds {
    pub int: bool,
    pub ip: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Set {
    store: Store,
    keys: Texts,
    uses: Vec<Use>,
    values: ValueKinds,
}

/// An entry that is valid for all uses of a set.
pub(super) struct Prepared<'t> {
    key: &'t [u8],
    value: &'t [u8],
    checked: Vec<Checked>,
}

impl Set {
    /// An empty set with room for this many entries.
    pub(super) fn with_room(room: usize) -> Set {
        Set {
            store: Store::default(),
            keys: Texts::new(View::Whole, false, Direction::Forward, room),
            uses: Vec::new(),
            values: ValueKinds::default(),
        }
    }

    /// An empty set with the same uses, whose first entry gets this order.
    pub(super) fn emptied(&self, room: usize, first_order: u64) -> Set {
        Set {
            store: Store::starting_at(first_order),
            uses: self
                .uses
                .iter()
                .map(|one| Use::new(one.how, room))
                .collect(),
            values: self.values,
            ..Set::with_room(room)
        }
    }

    /// The use of this kind; created if it does not exist yet.
    ///
    /// # Errors
    /// The order of the first entry that is not valid for it, and the reason.
    pub(super) fn use_for(&mut self, how: How) -> Result<usize, (u64, String)> {
        if let Some(at) = self.uses.iter().position(|one| one.how == how) {
            return Ok(at);
        }
        let mut one = Use::new(how, self.store.len());
        for (order, number) in self.in_order() {
            let checked = how.check(self.store.key(number));
            let checked = checked.map_err(|message| (order, message))?;
            one.insert(&self.store, number, checked);
        }
        one.seal();
        self.uses.push(one);
        Ok(self.uses.len() - 1)
    }

    /// All entries of a file were added.
    pub(super) fn seal(&mut self) {
        self.uses.iter_mut().for_each(Use::seal);
    }

    /// Adds required types of values.
    ///
    /// # Errors
    /// As for [`Set::use_for`].
    pub(super) fn require(&mut self, values: ValueKinds) -> Result<(), (u64, String)> {
        for (order, number) in self.in_order() {
            let checked = check_value(values, self.store.value(number));
            checked.map_err(|message| (order, message))?;
        }
        self.values.int |= values.int;
        self.values.ip |= values.ip;
        Ok(())
    }

    /// Checks whether an entry can be added.
    ///
    /// # Errors
    /// The fault in the entry.
    pub(super) fn prepare<'t>(
        &self,
        key: &'t [u8],
        value: &'t [u8],
    ) -> Result<Prepared<'t>, String> {
        check_lengths(key, value)?;
        check_value(self.values, value)?;
        let checked = self.uses.iter().map(|one| one.how.check(key));
        Ok(Prepared {
            key,
            value,
            checked: checked.collect::<Result<_, _>>()?,
        })
    }

    /// Adds an entry at the end; `of_file` marks one that is loaded from a file.
    ///
    /// # Errors
    /// There are too many entries.
    pub(super) fn add(&mut self, entry: Prepared<'_>, of_file: bool) -> Result<(), String> {
        let number = self.store.push(entry.key, entry.value, of_file)?;
        self.keys.insert(&self.store, number);
        for (one, checked) in self.uses.iter_mut().zip(entry.checked) {
            one.insert(&self.store, number, checked);
        }
        Ok(())
    }

    /// Changes the value of all entries with a key. Returns whether there are any.
    ///
    /// # Errors
    /// The value is not valid for a converter.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8]) -> Result<bool, String> {
        check_lengths(key, value)?;
        check_value(self.values, value)?;
        let Some(first) = self.find_key(key) else {
            return Ok(false);
        };
        let twins: Vec<u32> = self.keys.twins_of(first).collect();
        for number in [first].into_iter().chain(twins) {
            self.store.set_value(number, value);
        }
        Ok(true)
    }

    /// Changes the value of one entry.
    ///
    /// # Errors
    /// The value is not valid for a converter.
    pub(super) fn set_one(&mut self, number: u32, value: &[u8]) -> Result<(), String> {
        check_lengths(self.store.key(number), value)?;
        check_value(self.values, value)?;
        self.store.set_value(number, value);
        Ok(())
    }

    /// Removes the first entry with a key. Returns whether there is one.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        let number = self.find_key(key);
        if let Some(number) = number {
            self.remove_one(number);
        }
        number.is_some()
    }

    /// Removes one entry.
    pub(super) fn remove_one(&mut self, number: u32) {
        for one in &mut self.uses {
            one.remove(&self.store, number);
        }
        self.keys.remove(&self.store, number);
        self.store.remove(number);
    }

    /// The first entry with a key.
    pub(super) fn find_key(&self, key: &[u8]) -> Option<u32> {
        self.keys.find(&self.store, key)
    }

    /// The entry that matches a value, for one use of the set.
    #[inline]
    pub(super) fn find(&self, one: usize, value: &Value<'_>) -> Option<u32> {
        self.uses.get(one)?.find(&self.keys, &self.store, value)
    }

    /// A use.
    pub(super) fn one(&self, one: usize) -> &Use {
        &self.uses[one]
    }

    /// The number of uses.
    pub(super) fn ways(&self) -> usize {
        self.uses.len()
    }

    /// How a use compares.
    pub(super) fn how(&self, one: usize) -> Option<How> {
        self.uses.get(one).map(|one| one.how)
    }

    /// The required types of values.
    pub(super) fn values(&self) -> ValueKinds {
        self.values
    }

    /// The entries.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The size in memory, in bytes, without regular expressions.
    pub(super) fn bytes(&self) -> usize {
        let uses: usize = self.uses.iter().map(Use::bytes).sum();
        self.store.bytes() + self.keys.bytes() + uses
    }

    fn in_order(&self) -> Vec<(u64, u32)> {
        let mut all = self.store.numbers(0, u32::MAX).unwrap_or_default();
        all.sort_unstable();
        all
    }
}

/// Checks a number or an address with the parser of the converters.
fn check_value(kinds: ValueKinds, value: &[u8]) -> Result<(), String> {
    let is_int = !kinds.int || int_of(value).is_some();
    let is_ip = !kinds.ip || cast::ip_of(value).is_some();
    if is_int && is_ip {
        Ok(())
    } else {
        Err(format!(
            "unable to parse '{}'",
            String::from_utf8_lossy(value)
        ))
    }
}

/// The whole text as a number; 0 for an empty text.
pub(super) fn int_of(text: &[u8]) -> Option<i64> {
    let (value, used) = read_int(text);
    (used == text.len()).then_some(value)
}
