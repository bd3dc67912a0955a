//! A pattern set: its entries, the table of its keys, and its uses, which every edit updates.
//!
//! A use has the same number for as long as a configuration holds it. Several configurations may
//! hold the same use: a running one, and the one that follows it.

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
    /// By number; none for a number that is free.
    uses: Vec<Option<HeldUse>>,
    values: ValueHolders,
    /// Incremented by every edit.
    edits: u64,
}

#[derive(Debug)]
struct HeldUse {
    one: Use,
    /// The references that hold it.
    holders: u32,
}

/// The number of references that require each type of values.
#[derive(Clone, Copy, Debug, Default)]
struct ValueHolders {
    int: u32,
    ip: u32,
}

/// A use that was compiled for the content after this number of edits.
pub(super) struct Compiled {
    edits: u64,
    one: Use,
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
            values: ValueHolders::default(),
            edits: 0,
        }
    }

    /// An empty set with the same uses, whose first entry gets this order.
    pub(super) fn emptied(&self, room: usize, first_order: u64) -> Set {
        Set {
            store: Store::starting_at(first_order),
            uses: self
                .uses
                .iter()
                .map(|held| held.as_ref().map(|held| held.emptied(room)))
                .collect(),
            values: self.values,
            edits: self.edits,
            ..Set::with_room(room)
        }
    }

    /// The number of the use of this kind.
    fn number_of(&self, how: How) -> Option<usize> {
        let is = |held: &HeldUse| held.one.how == how;
        self.uses
            .iter()
            .position(|held| held.as_ref().is_some_and(is))
    }

    /// Compiles a use that does not exist yet.
    ///
    /// # Errors
    /// The order of the first entry that is not valid for it, and the reason.
    pub(super) fn compile(&self, how: How) -> Result<Option<Compiled>, (u64, String)> {
        if self.number_of(how).is_some() {
            return Ok(None);
        }
        let mut one = Use::new(how, self.store.len());
        for (order, number) in self.in_order() {
            let checked = how.check(self.store.key(number));
            let checked = checked.map_err(|message| (order, message))?;
            one.insert(&self.store, number, checked);
        }
        one.seal();
        let edits = self.edits;
        Ok(Some(Compiled { edits, one }))
    }

    /// Adds a holder of the use of this kind; the use is created if it does not exist yet.
    /// `compiled` is used if the content was not edited since. Returns the number of the use.
    ///
    /// # Errors
    /// As for [`Set::compile`].
    pub(super) fn hold(
        &mut self,
        how: How,
        compiled: Option<Compiled>,
    ) -> Result<usize, (u64, String)> {
        let compiled = match compiled.filter(|compiled| compiled.edits == self.edits) {
            Some(compiled) => Some(compiled),
            None => self.compile(how)?,
        };
        let known = self.number_of(how);
        if let Some(number) = known {
            if let Some(held) = &mut self.uses[number] {
                held.holders += 1;
            }
            return Ok(number);
        }
        let held = compiled.map(|compiled| HeldUse {
            one: compiled.one,
            holders: 1,
        });
        match self.uses.iter().position(Option::is_none) {
            Some(free) => {
                self.uses[free] = held;
                Ok(free)
            }
            None => {
                self.uses.push(held);
                Ok(self.uses.len() - 1)
            }
        }
    }

    /// Removes a holder of a use. Returns the use if that was the last one.
    pub(super) fn release(&mut self, number: usize) -> Option<Use> {
        let slot = self.uses.get_mut(number)?;
        let held = slot.as_mut()?;
        held.holders -= 1;
        if held.holders > 0 {
            return None;
        }
        let last = slot.take().map(|held| held.one);
        while let Some(None) = self.uses.last() {
            self.uses.pop();
        }
        last
    }

    /// All entries of a file were added.
    pub(super) fn seal(&mut self) {
        let uses = self.uses.iter_mut().flatten();
        uses.for_each(|held| held.one.seal());
    }

    /// Checks whether all values are of these types.
    ///
    /// # Errors
    /// As for [`Set::compile`].
    pub(super) fn check_values(&self, values: ValueKinds) -> Result<(), (u64, String)> {
        for (order, number) in self.in_order() {
            let checked = check_value(values, self.store.value(number));
            checked.map_err(|message| (order, message))?;
        }
        Ok(())
    }

    /// Adds a holder of these required types of values.
    pub(super) fn require(&mut self, values: ValueKinds) {
        self.values.int += u32::from(values.int);
        self.values.ip += u32::from(values.ip);
    }

    /// Removes a holder of these required types of values.
    pub(super) fn no_longer_require(&mut self, values: ValueKinds) {
        self.values.int -= u32::from(values.int);
        self.values.ip -= u32::from(values.ip);
    }

    /// Makes the uses and the required types those of another set, which this one is about to
    /// replace. Entries that are not valid for them are removed.
    pub(super) fn adopt(&mut self, current: &Set) {
        self.edits = current.edits + 1;
        let gains_types = self.values.kinds() != current.values.kinds();
        self.values = current.values;
        if gains_types {
            let kinds = self.values.kinds();
            self.remove_if(|store, number| check_value(kinds, store.value(number)).is_err());
        }
        self.uses.resize_with(current.uses.len(), || None);
        for (number, wanted) in current.uses.iter().enumerate() {
            let how = wanted.as_ref().map(|held| held.one.how);
            let own = self.uses[number].as_ref().map(|held| held.one.how);
            if own != how {
                self.uses[number] = how.map(|how| self.compile_valid(how));
            }
            if let (Some(own), Some(wanted)) = (&mut self.uses[number], wanted) {
                own.holders = wanted.holders;
            }
        }
    }

    /// Compiles a use, and removes the entries that are not valid for it.
    fn compile_valid(&mut self, how: How) -> HeldUse {
        self.remove_if(|store, number| how.check(store.key(number)).is_err());
        let mut one = Use::new(how, self.store.len());
        for (_, number) in self.in_order() {
            if let Ok(checked) = how.check(self.store.key(number)) {
                one.insert(&self.store, number, checked);
            }
        }
        HeldUse { one, holders: 1 }
    }

    fn remove_if(&mut self, is_bad: impl Fn(&Store, u32) -> bool) {
        for (_, number) in self.in_order() {
            if is_bad(&self.store, number) {
                self.remove_one(number);
            }
        }
    }

    /// The number of edits so far.
    pub(super) fn edits(&self) -> u64 {
        self.edits
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
        check_value(self.values(), value)?;
        let checked = self.uses.iter().map(|held| match held {
            Some(held) => held.one.how.check(key),
            None => Ok(None),
        });
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
        self.edits += 1;
        self.keys.insert(&self.store, number);
        for (held, checked) in self.uses.iter_mut().zip(entry.checked) {
            if let Some(held) = held {
                held.one.insert(&self.store, number, checked);
            }
        }
        Ok(())
    }

    /// Changes the value of all entries with a key. Returns whether there are any.
    ///
    /// # Errors
    /// The value is not valid for a converter.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8]) -> Result<bool, String> {
        check_lengths(key, value)?;
        check_value(self.values(), value)?;
        let Some(first) = self.find_key(key) else {
            return Ok(false);
        };
        self.edits += 1;
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
        check_value(self.values(), value)?;
        self.edits += 1;
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
        self.edits += 1;
        for held in self.uses.iter_mut().flatten() {
            held.one.remove(&self.store, number);
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
    pub(super) fn find(&self, number: usize, value: &Value<'_>) -> Option<u32> {
        self.one(number)?.find(&self.keys, &self.store, value)
    }

    /// A use.
    #[inline]
    pub(super) fn one(&self, number: usize) -> Option<&Use> {
        self.uses.get(number)?.as_ref().map(|held| &held.one)
    }

    /// The number of uses.
    #[cfg(test)]
    pub(super) fn uses(&self) -> usize {
        self.uses.iter().flatten().count()
    }

    /// How a use compares.
    pub(super) fn how(&self, number: usize) -> Option<How> {
        self.one(number).map(|one| one.how)
    }

    /// The required types of values.
    pub(super) fn values(&self) -> ValueKinds {
        self.values.kinds()
    }

    /// The entries.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The size in memory, in bytes, without regular expressions.
    pub(super) fn bytes(&self) -> usize {
        let uses = self.uses.iter().flatten().map(|held| held.one.bytes());
        let uses: usize = uses.sum();
        self.store.bytes() + self.keys.bytes() + uses
    }

    fn in_order(&self) -> Vec<(u64, u32)> {
        let mut all = self.store.numbers(0, u32::MAX).unwrap_or_default();
        all.sort_unstable();
        all
    }
}

impl HeldUse {
    fn emptied(&self, room: usize) -> HeldUse {
        HeldUse {
            one: Use::new(self.one.how, room),
            holders: self.holders,
        }
    }
}

impl ValueHolders {
    fn kinds(self) -> ValueKinds {
        ValueKinds {
            int: self.int > 0,
            ip: self.ip > 0,
        }
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
