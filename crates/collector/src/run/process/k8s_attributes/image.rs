//! References of images: `[registry/]path[:tag][@digest]` (OCI distribution specification).

/// The parts of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// Registry and path.
    pub repository: &'a str,
    /// None where it is not written.
    pub tag: Option<&'a str>,
    /// Algorithm and hash.
    pub digest: Option<&'a str>,
}

impl<'a> Image<'a> {
    /// Reads a reference; none where it is none, such as the bare hash of an image.
    pub fn parse(text: &'a str) -> Option<Image<'a>> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        if let Some(digest) = digest {
            let (algorithm, hash) = digest.split_once(':')?;
            let is_hash = hash.len() >= 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            if algorithm.is_empty() || !is_hash {
                return None;
            }
        }
        // The colon of a port stands before the path.
        let name_begin = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (repository, tag) = match rest.get(name_begin..)?.split_once(':') {
            Some((name, tag)) => (rest.get(..name_begin + name.len())?, Some(tag)),
            None => (rest, None),
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:".contains(&byte);
        let is_tag = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        // `sha256:…` alone is the hash of an image, and no name with a tag.
        let is_bare_hash =
            digest.is_none() && repository == "sha256" && tag.is_some_and(|tag| tag.len() == 64);
        let is_right = !repository.is_empty()
            && !repository.ends_with('/')
            && repository.bytes().all(is_plain)
            && tag.is_none_or(|tag| (1..=128).contains(&tag.len()) && tag.bytes().all(is_tag))
            && !is_bare_hash;
        is_right.then_some(Image {
            repository,
            tag,
            digest,
        })
    }

    /// What `service.version` is made of: the tag, the digest, or both.
    pub fn version(&self) -> Option<String> {
        match (self.tag, self.digest) {
            (Some(tag), Some(digest)) => Some(format!("{tag}@{digest}")),
            (one, other) => one.or(other).map(str::to_owned),
        }
    }
}

/// The image of a container's status with its digest; none where it has none.
pub fn with_digest(image_id: &str) -> Option<&str> {
    let text = image_id
        .split_once("://")
        .map_or(image_id, |(_, text)| text);
    Image::parse(text)?.digest.map(|_| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_a_repository_a_tag_and_a_digest() {
        let hash = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let parts = |text: &str| {
            let image = Image::parse(text)?;
            let owned = |part: Option<&str>| part.map(str::to_owned);
            Some((
                image.repository.to_owned(),
                owned(image.tag),
                owned(image.digest),
            ))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parts("nginx"), Some(("nginx".into(), None, None)));
        assert_eq!(
            parts("nginx:1.2"),
            Some(("nginx".into(), some("1.2"), None))
        );
        assert_eq!(
            parts("host:5000/a/b"),
            Some(("host:5000/a/b".into(), None, None))
        );
        let long = format!("host:5000/a/b:v1@{hash}");
        assert_eq!(
            parts(&long),
            Some(("host:5000/a/b".into(), some("v1"), some(hash)))
        );
        assert_eq!(
            Image::parse(&long).unwrap().version(),
            Some(format!("v1@{hash}"))
        );
        assert_eq!(Image::parse("a").unwrap().version(), None);
        for wrong in [
            "",
            ":1",
            "a/",
            "a b",
            "a@sha256",
            "a@sha256:xy",
            hash,
            "a:",
            "ä",
        ] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
        let id = format!("docker-pullable://a/b@{hash}");
        assert_eq!(with_digest(&id), Some(&id["docker-pullable://".len()..]));
        assert_eq!(with_digest("a/b:1"), None);
        assert_eq!(with_digest(hash), None);
    }
}
