use super::*;

const AFTER: Marking = Marking {
    failed: false,
    refused: false,
};
const ALL: Marking = Marking {
    failed: true,
    refused: true,
};

fn partition(number: i32) -> Partition {
    Partition {
        topic: "spans".into(),
        number,
    }
}

fn sorted(mut moved: Vec<(Partition, i64)>) -> Vec<(i32, i64)> {
    moved.sort_by_key(|(partition, _)| partition.number);
    let moved = moved.into_iter();
    moved
        .map(|(partition, end)| (partition.number, end))
        .collect()
}

#[test]
fn the_offset_of_the_first_message_that_is_not_settled_is_committed() {
    let offsets = Offsets::new(ALL);
    let begin = Instant::now();
    let at = |tokens: u32| begin + TOKEN_AGE * tokens;
    let first = offsets.take(&partition(0), (10, 1), at(0));
    let second = offsets.take(&partition(0), (11, 1), at(1));
    let other = offsets.take(&partition(1), (70, 1), at(1));
    let third = offsets.take(&partition(0), (15, 1), at(2));
    offsets.rotate(at(3));
    drop((third, other));
    assert!(offsets.moved().is_empty(), "older ones are not settled");
    drop(first);
    assert_eq!(sorted(offsets.moved()), [(0, 11)]);
    drop(second);
    assert_eq!(sorted(offsets.moved()), [(0, 16), (1, 71)]);
    assert!(offsets.moved().is_empty(), "each once");
    assert!(offsets.waiting().iter().all(|(_, bytes)| *bytes == 0));
}

#[test]
fn what_is_left_at_the_end_is_never_committed() {
    let offsets = Offsets::new(ALL);
    let now = Instant::now();
    let token = offsets.take(&partition(0), (3, 5), now);
    token.mark(Fate::Left);
    drop(token);
    offsets.close();
    assert!(offsets.moved().is_empty() && offsets.stuck().is_empty());
    assert_eq!(offsets.waiting(), [(partition(0), 5)]);
}

#[test]
fn what_could_not_be_delivered_counts_as_the_marking_says() {
    for (marking, fate, is_done) in [
        (ALL, Fate::Failed, true),
        (ALL, Fate::Refused, true),
        (AFTER, Fate::Failed, false),
        (AFTER, Fate::Refused, false),
        (AFTER, Fate::Done, true),
    ] {
        let offsets = Offsets::new(marking);
        let token = offsets.take(&partition(0), (3, 1), Instant::now());
        token.mark(fate);
        offsets.close();
        drop(token);
        assert_eq!(offsets.moved().len(), usize::from(is_done));
        let stuck = offsets.stuck();
        assert_eq!(stuck.is_empty(), is_done, "{marking:?} {fate:?}");
        if let [one] = &stuck[..] {
            assert_eq!((one.offset, one.fate), (3, fate));
            offsets.forget(&one.partition);
            assert!(offsets.stuck().is_empty());
        }
    }
}

#[test]
fn a_message_that_cannot_be_read_stops_its_own_partition_only() {
    let offsets = Offsets::new(AFTER);
    let now = Instant::now();
    let tokens = [(0, 3), (0, 4), (1, 3)]
        .map(|(number, offset)| offsets.take(&partition(number), (offset, 1), now));
    offsets.mark(&partition(0), 4, Fate::Refused);
    offsets.mark(&partition(2), 4, Fate::Refused);
    offsets.close();
    drop(tokens);
    assert_eq!(sorted(offsets.moved()), [(1, 4)]);
    let stuck = offsets.stuck();
    assert_eq!((stuck.len(), stuck[0].fate), (1, Fate::Refused));
}

#[test]
fn what_comes_back_to_its_owner_is_counted_anew() {
    let offsets = Offsets::new(ALL);
    let begin = Instant::now();
    let old = offsets.take(&partition(0), (3, 1), begin);
    offsets.rotate(begin + TOKEN_AGE);
    offsets.forget(&partition(0));
    let new = offsets.take(&partition(0), (3, 1), begin + TOKEN_AGE);
    drop(old);
    assert!(offsets.moved().is_empty());
    offsets.close();
    drop(new);
    assert_eq!(sorted(offsets.moved()), [(0, 4)]);
}

#[test]
fn tokens_are_bounded() {
    let offsets = Offsets::new(ALL);
    let begin = Instant::now();
    let mut tokens = Vec::new();
    for number in 0..2 * TOKENS_MAX as u32 {
        let now = begin + TOKEN_AGE * number;
        tokens.push(offsets.take(&partition(0), (i64::from(number), 1), now));
    }
    assert_eq!(offsets.state().alive, TOKENS_MAX);
    offsets.close();
    drop(tokens);
    assert_eq!(sorted(offsets.moved()), [(0, 2 * TOKENS_MAX as i64)]);
    assert_eq!(offsets.state().alive, 0);
    // By bytes too, when there is room for more of them.
    for offset in 0..2 {
        let large = (offset, TOKEN_BYTES_MAX);
        drop(offsets.take(&partition(1), large, begin));
    }
    assert_eq!(sorted(offsets.moved()), [(1, 1)]);
}
