//! Disk geometry: cylinders, heads, sectors (VHD specification, appendix "CHS Calculation").

/// Geometry reported by an ATA controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of cylinders of the disk.
    pub cylinders: u16,
    /// Number of heads per cylinder.
    pub heads: u8,
    /// Number of sectors per track.
    pub sectors_per_track: u8,
}

/// Maximum number of sectors that a geometry represents: about 127 GiB.
pub(crate) const GEOMETRY_SECTORS_MAX: u64 = 65535 * 16 * 255;
/// Number of sectors from which tracks have the maximum length.
const LONG_TRACKS_SECTORS: u64 = 65535 * 16 * 63;
/// Upper bound of the distance to the next representable size: two of the largest cylinders.
const STEP_SECTORS: u64 = 2 * 16 * 255;

impl Geometry {
    /// Returns the geometry of a disk with `sectors` sectors as specified. It represents at most
    /// that many sectors.
    #[must_use]
    pub fn from_sectors(sectors: u64) -> Self {
        let sectors = sectors.min(GEOMETRY_SECTORS_MAX);
        let (heads, sectors_per_track) = if sectors >= LONG_TRACKS_SECTORS {
            (16, 255)
        } else {
            let tracks = sectors / 17;
            let heads = tracks.div_ceil(1024).max(4);
            let is_too_much = |track: u64, heads: u64| sectors / track >= heads * 1024;
            match heads {
                0..=16 if !is_too_much(17, heads) => (heads, 17),
                _ if !is_too_much(31, 16) => (16, 31),
                _ => (16, 63),
            }
        };
        let cylinders = sectors / sectors_per_track / heads;
        Self {
            cylinders: u16::try_from(cylinders).unwrap_or(u16::MAX),
            heads: u8::try_from(heads).unwrap_or(u8::MAX),
            sectors_per_track: u8::try_from(sectors_per_track).unwrap_or(u8::MAX),
        }
    }

    /// Returns the number of sectors that the geometry represents.
    #[must_use]
    pub fn sectors(self) -> u64 {
        u64::from(self.cylinders) * u64::from(self.heads) * u64::from(self.sectors_per_track)
    }

    /// Returns the smallest number of sectors, at least `sectors`, that a geometry represents
    /// exactly. Above the largest geometry it returns `sectors`, because readers then use Current
    /// Size.
    #[must_use]
    pub fn round_up(sectors: u64) -> u64 {
        (sectors..=sectors.saturating_add(STEP_SECTORS))
            .find(|candidate| Self::from_sectors(*candidate).sectors() == *candidate)
            .unwrap_or(sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(sectors: u64) -> (u16, u8, u8) {
        let geometry = Geometry::from_sectors(sectors);
        (geometry.cylinders, geometry.heads, geometry.sectors_per_track)
    }

    #[test]
    fn geometries_are_those_of_the_specification() {
        // Computed manually from the appendix's pseudo code.
        let cases = [
            (0, (0, 4, 17)),
            (67, (0, 4, 17)),
            (68, (1, 4, 17)),
            (4096, (60, 4, 17)),
            (65536, (963, 4, 17)),
            (131_072, (963, 8, 17)),
            (278_527, (1023, 16, 17)),
            (278_528, (561, 16, 31)),
            (507_903, (1023, 16, 31)),
            (507_904, (503, 16, 63)),
            (4_194_304, (4161, 16, 63)),
            (66_059_279, (65534, 16, 63)),
            (66_059_280, (16191, 16, 255)),
            (267_382_799, (65534, 16, 255)),
            (267_382_800, (65535, 16, 255)),
            (4_278_190_080, (65535, 16, 255)),
        ];
        for (sectors, expected) in cases {
            assert_eq!(tuple(sectors), expected, "{sectors}");
        }
    }

    #[test]
    fn round_up_returns_the_next_representable_size() {
        for sectors in (1..600_000).step_by(997).chain([66_059_000, 66_059_280, 267_382_000]) {
            let rounded = Geometry::round_up(sectors);
            assert!(rounded >= sectors, "{sectors}");
            assert_eq!(Geometry::from_sectors(rounded).sectors(), rounded, "{sectors}");
            assert_eq!(Geometry::round_up(rounded), rounded, "{sectors}");
            for between in sectors..rounded {
                assert_ne!(Geometry::from_sectors(between).sectors(), between, "{sectors}");
            }
        }
        let sectors = GEOMETRY_SECTORS_MAX + 1;
        assert_eq!(Geometry::round_up(sectors), sectors);
    }
}
