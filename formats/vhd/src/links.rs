//! Identification of an image and of its parent, without the block allocation table.

use suimon_image::{ImageError, ImageFault, ImageFile};

use crate::find_footers::find_footers;
use crate::footer::DiskType;
use crate::header::{DynamicHeader, HEADER_BYTES};
use crate::locator::{self, Parent};

/// Identifiers of an image and of its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Unique Id of the disk, by which children identify their parent.
    pub unique_id: [u8; 16],
    /// Parent information of a differencing disk; `None` for other types.
    pub parent: Option<Parent>,
}

impl Links {
    /// Reads the footer and, of a differencing disk, the dynamic header and the parent locators.
    /// Another program may use the image. Nothing is written.
    ///
    /// # Errors
    ///
    /// The file is not an image, these structures are damaged, or the file cannot be read.
    pub fn read(file: &dyn ImageFile) -> Result<Self, ImageError> {
        let footers = find_footers(file)?;
        let footer = &footers.selected.footer;
        let unique_id = footer.unique_id;
        if footer.disk_type != DiskType::Differencing {
            return Ok(Self { unique_id, parent: None });
        }
        let offset = footer.data_offset;
        if offset.checked_add(HEADER_BYTES).is_none_or(|end| end > footers.payload_end_max) {
            let fault = ImageFault::Truncated { file_len: footers.payload_end_max };
            let told_at = footers.selected.offset.saturating_add(16);
            return Err(ImageError::new("Data Offset", told_at, fault));
        }
        let mut bytes = [0; 1024];
        file.read_at(offset, &mut bytes)
            .map_err(|error| ImageError::new("dynamic disk header", offset, error))?;
        let header = DynamicHeader::parse(&bytes, offset)?;
        Ok(Self { unique_id, parent: Some(locator::read_parent(file, &header, offset)?) })
    }
}
