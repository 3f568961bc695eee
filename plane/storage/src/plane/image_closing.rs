//! Closing of the images of disks that are out of service.

use suimon_quantity::DiskId;

use suimon_image_files::LayerStack;

/// Closes the images of a disk that is out of service and has no caller that could close them.
pub(crate) fn close_images(disk: DiskId, spec: LayerStack) {
    if let Err(error) = suimon_image_files::close(spec, "its own image") {
        tracing::warn!(
            ?disk,
            %error,
            "cannot close a disk cleanly; its state is as after a crash"
        );
    }
}
