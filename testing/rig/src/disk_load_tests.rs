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
fn after_a_kill_each_sector_is_old_or_new_and_does_not_change_again() {
    let mut block = block();
    let content = read(&block, [2, 3, 4, 2, 3, 4, 2, 2]);
    block.settle(&content).unwrap();
    block.compare(&content).unwrap();
    // Data that was returned once must not disappear at the next kill.
    let content_before = read(&block, [2, 2, 4, 2, 3, 4, 2, 2]);
    let message = block.settle(&content_before).unwrap_err().to_string();
    assert_eq!(message, format!("byte {}: version 2, of 3 to 4", (1 << 21) + SECTOR));
}

#[test]
fn loss_of_completed_writes_is_detected() {
    let mut block = block();
    for lost in [0, 1] {
        let content = read(&block, [3, 3, 3, 3, 3, 3, 3, lost]);
        let message = block.settle(&content).unwrap_err().to_string();
        assert!(message.ends_with(&format!("version {lost}, of 2 to 4")), "{message}");
    }
}

#[test]
fn content_that_was_never_written_is_detected() {
    let block = block();
    let other_block = Block { offset: 0, ..block.clone() };
    let mut torn = block.block_content(3);
    torn[600] ^= 1;
    for content in [other_block.block_content(3), torn, block.block_content(5)] {
        let message = block.clone().settle(&content).unwrap_err().to_string();
        assert!(message.contains("none of the versions 2 to 4"), "{message}");
    }
}

#[test]
fn while_the_server_lives_only_the_last_answer_counts() {
    let block = block();
    block.compare(&block.block_content(2)).unwrap();
    for version in [1, 3, 4] {
        assert!(block.compare(&block.block_content(version)).is_err(), "{version}");
    }
}

#[test]
fn zeros_are_versions() {
    let mut block = block();
    block.zeros = vec![4];
    let content = read(&block, [3, 4, 3, 4, 3, 4, 3, 4]);
    block.settle(&content).unwrap();
    // Those differ from the initial zeros.
    block.zeros.clear();
    assert!(block.settle(&vec![0; BLOCK]).is_err());
}
