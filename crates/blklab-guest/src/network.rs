//! The network of the guest: only the loopback device, through which its programs talk to each other.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

const LOOPBACK: &[u8] = b"lo";

/// Switches the loopback device on; it gets the address 127.0.0.1. A kernel without TCP has the device,
/// too, and no addresses.
///
/// # Errors
/// One line.
pub fn loopback() -> Result<(), String> {
    switch_on().map_err(|error| format!("the loopback device: {error}"))
}

fn switch_on() -> io::Result<()> {
    // Any socket can ask for it.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: numbers, all of which may be zero.
    let mut device: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in device.ifr_name.iter_mut().zip(LOOPBACK) {
        *to = from.cast_signed();
    }
    device.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads a whole `ifreq` from the address.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &raw const device) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
