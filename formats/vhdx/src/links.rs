//! Identification of an image and of its parent, without the BAT.

use suimon_image::{ImageError, ImageFile};

use crate::header::Headers;
use crate::log::read_log;
use crate::metadata::Metadata;
use crate::region::Regions;
use crate::replayed_view::{LogOverlay, ReplayedView};
use crate::{Guid, ParentLocator};

/// Identifiers of an image's contents and of its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// DataWriteGuid, to which children are linked.
    pub data_write: Guid,
    /// Parent locator of a differencing image; `None` for other images.
    pub parent: Option<ParentLocator>,
}

impl Links {
    /// Reads the headers, the region table and the metadata of an image, which may be in use by
    /// another program. Nothing is written. The log is read only if the metadata are invalid
    /// without it.
    ///
    /// # Errors
    ///
    /// The file is not an image, these structures are damaged, or the file cannot be read.
    pub fn read(file: &dyn ImageFile) -> Result<Self, ImageError> {
        let file_len = file.len().map_err(|error| ImageError::new("file", 0, error))?;
        let headers = Headers::read(file, file_len)?;
        let overlay = LogOverlay::default();
        let view = ReplayedView { file, file_len, replayed_len: file_len, overlay: &overlay };
        let parent = match read_parent(&view) {
            Ok(parent) => parent,
            Err(error) => {
                let Ok(replay) = read_log(file, file_len, &headers.current) else {
                    return Err(error);
                };
                if replay.changes.is_empty() {
                    return Err(error);
                }
                let overlay = LogOverlay { changes: replay.changes };
                let len = replay.file_len.max(file_len);
                read_parent(&ReplayedView { file, file_len, replayed_len: len, overlay: &overlay })?
            }
        };
        Ok(Self { data_write: headers.current.data_write, parent })
    }
}

fn read_parent(view: &ReplayedView<'_>) -> Result<Option<ParentLocator>, ImageError> {
    let regions = Regions::read(view)?;
    Ok(Metadata::read(view, regions.metadata)?.parent)
}
