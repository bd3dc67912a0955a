//! Which backend an identifier belongs to: a consistent ring (Karger et al.), with the places of
//! the Collector's `loadbalancingexporter`, so that fleets of both agree.
//!
//! A backend has [`POINTS`] places on a ring of [`POSITIONS`]: the CRC-32 (IEEE) of its name and
//! the number of the point. An identifier belongs to the backend at the first place that is not
//! before its own CRC-32.

/// Places of the ring.
const POSITIONS: u32 = 36_000;
/// Places of each backend.
const POINTS: u8 = 100;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// Of each position, the backend by its number; empty where there are none.
    owners: Vec<u16>,
}

impl Ring {
    /// Of backends by their names, in this order: where two have one place, it is the first one's.
    #[must_use]
    pub fn new(names: &[String]) -> Ring {
        let mut points: Vec<Option<u16>> = vec![None; POSITIONS as usize];
        for (number, name) in names.iter().enumerate().take(usize::from(u16::MAX)) {
            for point in 0..POINTS {
                let mut hash = crc32fast::Hasher::new();
                hash.update(name.as_bytes());
                hash.update(&[point]);
                let place = &mut points[(hash.finalize() % POSITIONS) as usize];
                place.get_or_insert(number as u16);
            }
        }
        // Behind the last place the first one follows.
        let Some(mut next) = points.iter().flatten().next().copied() else {
            return Ring::default();
        };
        let mut owners = Vec::with_capacity(points.len());
        for point in points.into_iter().rev() {
            next = point.unwrap_or(next);
            owners.push(next);
        }
        owners.reverse();
        Ring { owners }
    }

    /// The number of the backend that an identifier belongs to; 0 where there are none.
    #[inline]
    #[must_use]
    pub fn owner(&self, identifier: &[u8]) -> usize {
        let position = crc32fast::hash(identifier) % POSITIONS;
        let owner = self.owners.get(position as usize);
        owner.copied().map_or(0, usize::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn places_are_the_collectors() {
        // Of `consistent_hashing_test.go`: the first five points of two endpoints, and who gets
        // what.
        let all = names(&["endpoint-1", "endpoint-2"]);
        let expected = [
            [1401, 4175, 14133, 17836, 21667],
            [10240, 15002, 21263, 26806, 27020],
        ];
        for (name, expected) in all.iter().zip(expected) {
            let mut places: Vec<u32> = (0..5)
                .map(|point| {
                    let text = [name.as_bytes(), &[point]].concat();
                    crc32fast::hash(&text) % POSITIONS
                })
                .collect();
            places.sort_unstable();
            assert_eq!(places, expected);
        }
        let ring = Ring::new(&all);
        assert_eq!(ring.owner(&[1, 2, 0, 0]), 0);
        assert_eq!(ring.owner(&[128, 128, 0, 0]), 1);
        assert_eq!(ring.owner(b"ad-service-7"), 0);
        assert_eq!(ring.owner(b"get-recommendations-1"), 1);
        // Each place of the first five is its owner's, unless the other has it too.
        for (number, places) in expected.iter().enumerate() {
            for place in places {
                assert_eq!(usize::from(ring.owners[*place as usize]), number);
            }
        }
    }

    #[test]
    fn traces_go_where_the_collector_sends_them() {
        // Worked out apart from this code, by the rule of the module.
        let ring = Ring::new(&names(&[
            "backend-1:4317",
            "backend-2:4317",
            "backend-3:4317",
        ]));
        let cases: [(u128, usize); 4] = [
            (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0),
            (1, 2),
            (u128::MAX, 0),
            (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0),
        ];
        for (trace_id, backend) in cases {
            assert_eq!(ring.owner(&trace_id.to_be_bytes()), backend, "{trace_id:x}");
        }
        assert_eq!(ring.owner(b"checkout"), 1);
        assert_eq!(ring.owner(b""), 1);
    }

    #[test]
    fn a_change_moves_few_and_shares_are_fair() {
        let before = names(&["a:1", "b:1", "c:1", "d:1"]);
        let (ring, fewer) = (Ring::new(&before), Ring::new(&before[..3]));
        let (mut moved, mut shares) = (0, [0; 4]);
        for id in 0..10_000_u128 {
            let owner = ring.owner(&id.to_be_bytes());
            shares[owner] += 1;
            let now = fewer.owner(&id.to_be_bytes());
            // What the one that is gone had goes elsewhere, and nothing else.
            moved += usize::from(owner != now);
            assert!(owner == now || owner == 3);
        }
        assert_eq!(moved, shares[3]);
        assert!(
            shares.iter().all(|share| (1500..3500).contains(share)),
            "{shares:?}"
        );
    }

    #[test]
    fn without_backends_there_is_no_owner() {
        assert_eq!(Ring::new(&[]), Ring::default());
        assert_eq!(Ring::default().owner(b"x"), 0);
        assert!(
            Ring::new(&names(&["one"]))
                .owners
                .iter()
                .all(|owner| *owner == 0)
        );
    }
}
