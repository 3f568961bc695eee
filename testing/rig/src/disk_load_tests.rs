use super::*;

/// Block whose version 2 was acknowledged; 3 and 4 were sent.
fn block() -> Block {
    Block { offset: 1 << 21, sent: 4, known: [2; SECTORS], ..Block::default() }
}

/// Returns the data of a read in which each sector has the given version.
fn read(block: &Block, versions: [u64; SECTORS]) -> Vec<u8> {
    let sector = |(nth, version): (usize, u64)| block.content(version, nth);
    versions.into_iter().enumerate().flat_map(sector).collect()
}

#[test]
fn after_a_death_each_sector_is_old_or_new_and_stays_so() {
    let mut block = block();
    let found = read(&block, [2, 3, 4, 2, 3, 4, 2, 2]);
    block.settle(&found).unwrap();
    block.compare(&found).unwrap();
    // Data that was returned once must not disappear at the next death.
    let back = read(&block, [2, 2, 4, 2, 3, 4, 2, 2]);
    let said = block.settle(&back).unwrap_err().to_string();
    assert_eq!(said, format!("byte {}: version 2, of 3 to 4", (1 << 21) + SECTOR));
}

#[test]
fn what_was_answered_and_is_lost_is_found() {
    let mut block = block();
    for lost in [0, 1] {
        let found = read(&block, [3, 3, 3, 3, 3, 3, 3, lost]);
        let said = block.settle(&found).unwrap_err().to_string();
        assert!(said.ends_with(&format!("version {lost}, of 2 to 4")), "{said}");
    }
}

#[test]
fn what_nobody_wrote_there_is_found() {
    let block = block();
    let elsewhere = Block { offset: 0, ..block.clone() };
    let mut torn = block.whole(3);
    torn[600] ^= 1;
    for found in [elsewhere.whole(3), torn, block.whole(5)] {
        let said = block.clone().settle(&found).unwrap_err().to_string();
        assert!(said.contains("none of the versions 2 to 4"), "{said}");
    }
}

#[test]
fn while_the_server_lives_only_the_last_answer_counts() {
    let block = block();
    block.compare(&block.whole(2)).unwrap();
    for wrong in [1, 3, 4] {
        assert!(block.compare(&block.whole(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn zeros_are_versions() {
    let mut block = block();
    block.zeros = vec![4];
    let found = read(&block, [3, 4, 3, 4, 3, 4, 3, 4]);
    block.settle(&found).unwrap();
    // Those differ from the initial zeros.
    block.zeros.clear();
    assert!(block.settle(&vec![0; BLOCK]).is_err());
}
