//! Set of blocks, one bit per block.

/// Set of block numbers of an image.
#[derive(Debug)]
pub(crate) struct BlockSet {
    words: Vec<u64>,
}

impl BlockSet {
    pub(crate) fn new(blocks: u32) -> Self {
        Self { words: vec![0; blocks.div_ceil(64) as usize] }
    }

    pub(crate) fn contains(&self, block: u32) -> bool {
        self.words.get((block / 64) as usize).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, block: u32) {
        if let Some(word) = self.words.get_mut((block / 64) as usize) {
            *word |= 1 << (block % 64);
        }
    }

    pub(crate) fn remove(&mut self, block: u32) {
        if let Some(word) = self.words.get_mut((block / 64) as usize) {
            *word &= !(1 << (block % 64));
        }
    }
}
