//! Where a trace is read from: a file or a pipe, compressed or not, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 18;

/// The bytes by which a format is detected.
const HEAD_BYTES: usize = 1 << 16;

/// Memory that a decompressor may take: xz -9 needs 65 MiB.
const XZ_MEMORY_MAX: u64 = 256 << 20;

/// A stream of bytes, with those at its beginning known.
pub struct Input {
    head: Vec<u8>,
    /// How much of the head was read.
    taken: usize,
    rest: Box<dyn BufRead + Send>,
    compression: Option<&'static str>,
}

impl Input {
    /// The file of this path; `-` is standard input.
    ///
    /// # Errors
    /// The system's, of opening or reading.
    pub fn open(path: &Path) -> io::Result<Input> {
        if path.as_os_str() == "-" {
            return Input::new(io::stdin());
        }
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        Input::new(file)
    }

    /// The stream, decompressed if its first bytes are those of gzip, xz or zstd.
    ///
    /// # Errors
    /// The system's, of reading.
    pub fn new(stream: impl Read + Send + 'static) -> io::Result<Input> {
        let (magic, rest) = first(BufReader::with_capacity(BUFFER_BYTES, stream), 6)?;
        let whole = io::Cursor::new(magic.clone()).chain(rest);
        let (compression, mut plain): (_, Box<dyn BufRead + Send>) = match magic.as_slice() {
            [0x1f, 0x8b, ..] => (Some("gzip"), buffered(flate2::bufread::MultiGzDecoder::new(whole))),
            [0xfd, b'7', b'z', b'X', b'Z', 0] => {
                let stream =
                    liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_MAX, liblzma::stream::CONCATENATED)
                        .map_err(io::Error::other)?;
                (Some("xz"), buffered(liblzma::bufread::XzDecoder::new_stream(whole, stream)))
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(whole)?;
                // 128 MiB: what zstd itself takes without being told.
                decoder.window_log_max(27)?;
                (Some("zstd"), buffered(decoder))
            }
            _ => (None, Box::new(whole)),
        };
        let mut head = Vec::new();
        plain.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        Ok(Input { head, taken: 0, rest: plain, compression })
    }

    /// Its first bytes.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether the head is all of it.
    pub fn is_short(&self) -> bool {
        self.head.len() < HEAD_BYTES
    }

    /// The program that compressed it.
    pub fn compression(&self) -> Option<&'static str> {
        self.compression
    }
}

fn buffered(decoder: impl Read + Send + 'static) -> Box<dyn BufRead + Send> {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
}

/// The first `length` bytes, or as many as there are, and the stream behind them.
fn first<R: BufRead>(mut stream: R, length: u64) -> io::Result<(Vec<u8>, R)> {
    let mut found = Vec::new();
    stream.by_ref().take(length).read_to_end(&mut found)?;
    Ok((found, stream))
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let filled = self.fill_buf()?;
        let length = filled.len().min(into.len());
        into[..length].copy_from_slice(&filled[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Input {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken < self.head.len() { Ok(&self.head[self.taken..]) } else { self.rest.fill_buf() }
    }

    #[inline]
    fn consume(&mut self, length: usize) {
        if self.taken < self.head.len() {
            self.taken += length;
        } else {
            self.rest.consume(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: Vec<u8>) -> (Option<&'static str>, Vec<u8>) {
        let mut input = Input::new(io::Cursor::new(bytes)).expect("readable");
        let mut found = Vec::new();
        input.read_to_end(&mut found).expect("whole");
        (input.compression(), found)
    }

    #[test]
    fn compressed_streams_are_read_like_plain_ones() {
        let plain: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).expect("memory");
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
        xz.write_all(&plain).expect("memory");
        let zstd = zstd::stream::encode_all(plain.as_slice(), 1).expect("memory");
        assert_eq!(read(plain.clone()), (None, plain.clone()));
        let gzip = gzip.finish().expect("memory");
        // Two files in one, as `cat a.gz b.gz` makes.
        assert_eq!(read([gzip.clone(), gzip].concat()), (Some("gzip"), plain.repeat(2)));
        assert_eq!(read(xz.finish().expect("memory")), (Some("xz"), plain.clone()));
        assert_eq!(read(zstd), (Some("zstd"), plain));
        assert_eq!(read(Vec::new()), (None, Vec::new()));
    }

    #[test]
    fn a_cut_compressed_stream_is_an_error_and_no_end() {
        let zstd = zstd::stream::encode_all(&[7; 300_000][..], 1).expect("memory");
        let cut = Input::new(io::Cursor::new(zstd[..zstd.len() - 3].to_vec()));
        let read = cut.and_then(|mut input| input.read_to_end(&mut Vec::new()));
        assert!(read.is_err());
    }
}
