//! Disks, jobs, stores and NBD, tested with third-party components. One module per subject.

mod deaths;
mod faults;
mod faulty_images;
mod front_end;
mod full_stores;
mod guest_nbd;
mod image_changes;
mod images;
mod job_progress;
mod jobs;
mod limiting;
mod missing_images;
mod nbd_servers;
mod openings;
mod reconnecting;
mod served;
mod store_errors;
mod store_measure;
