//! Extents: locations of disk bytes.

/// Location of an extent's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In the image file, starting at this offset in bytes. Bytes beyond the end of the file read
    /// as zeros.
    File(u64),
    /// Not stored; reads as zeros.
    Zero,
    /// In the parent disk, at the same disk offset. Bytes beyond the end of the parent read as
    /// zeros.
    Parent,
}

/// Contiguous disk bytes with one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageExtent {
    /// Location of the extent's bytes.
    pub location: Location,
    /// Length in bytes; not 0.
    pub len: u64,
}

/// Appends an extent, merging it with the last one if it continues there.
pub fn push_extent(extents: &mut Vec<ImageExtent>, location: Location, len: u64) {
    if len == 0 {
        return;
    }
    if let Some(last) = extents.last_mut() {
        let continues = match (last.location, location) {
            (Location::File(before), Location::File(next)) => {
                before.checked_add(last.len) == Some(next)
            }
            (before, next) => before == next,
        };
        if continues {
            last.len = last.len.saturating_add(len);
            return;
        }
    }
    extents.push(ImageExtent { location, len });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_extents_are_merged() {
        let mut extents = Vec::new();
        for (location, len) in [
            (Location::File(4096), 512),
            (Location::File(4608), 512),
            (Location::File(8192), 512),
            (Location::Zero, 100),
            (Location::Zero, 0),
            (Location::Zero, 28),
            (Location::Parent, 5),
        ] {
            push_extent(&mut extents, location, len);
        }
        let expected = [
            ImageExtent { location: Location::File(4096), len: 1024 },
            ImageExtent { location: Location::File(8192), len: 512 },
            ImageExtent { location: Location::Zero, len: 128 },
            ImageExtent { location: Location::Parent, len: 5 },
        ];
        assert_eq!(extents, expected);
    }
}
