# SPDX-License-Identifier: Apache-2.0
"""URLs in messages, without parts that may be secret."""

import re
import socket
import urllib.parse

_SCHEMES = "s3://, gs://, az://, https://, http://"
# {scheme of an object store: its name in obstore}. Keys in object stores may hold / ? # @.
STORES = {"s3": "s3", "s3a": "s3a", "gs": "gs", "gcs": "gs", "az": "az", "adl": "adl",
          "azure": "azure", "abfs": "abfs", "abfss": "abfss"}


class Refused(Exception):
    """Raised to stop reading an answer. Its text is for the user."""


class Empty(Exception):
    """Raised for a folder without files."""


def _is_ambiguous(url):
    """Returns True if user name or password may extend beyond the first / ? or #: a @ follows."""
    scheme, _, rest = url.partition("://")
    if scheme in STORES and ":" not in rest.rpartition("@")[0]:
        return False
    return "@" in rest[len(re.split("[/?#]", rest, maxsplit=1)[0]):]


def _is_user(authority):
    """Returns True if the text in place of HOST:PORT looks like USER:PASSWORD, without a host."""
    host, colon, port = authority.rpartition(":")
    return "@" not in authority and bool(colon) and not host.startswith("[") and not port.isdecimal()


def shown(url):
    """Returns the name of a URL that was read: without user, password, query and fragment."""
    scheme, _, rest = url.partition("://")
    rest = re.split("[?#]" if scheme.startswith("http") else "[?]", rest, maxsplit=1)[0]
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def hidden(url):
    """Returns the name of a URL that could not be read: no possible part of a password either."""
    scheme, _, rest = url.partition("://")
    if not _is_ambiguous(url):
        return f"{scheme}://..." if _is_user(re.split("[/?#]", rest, maxsplit=1)[0]) else shown(url)
    before, _, behind = rest.rpartition("@")
    return f"{scheme}://..." if re.search("[?#]", before) else shown(f"{scheme}://{behind}")


def _secrets(url):
    """Returns the parts of a URL that no message may show, the longest first."""
    rest = url.partition("://")[2]
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    secret = re.split("[?#]", rest, maxsplit=1)[1:]
    if _is_user(authority):
        secret.append(authority)
    if "@" in authority or _is_ambiguous(url):
        secret.append(rest.rpartition("@")[0])
    parts = {part for text in secret for known in (text, urllib.parse.unquote(text))
             for part in re.split("[/?#@:&=]+", known) if len(part) > 2}
    return sorted(parts, key=len, reverse=True)


def reason(error, url=""):
    """Returns an error as one line, without the secrets of `url` and of other URLs in it."""
    text = str(error).partition("Debug source")[0]  # obstore appends such a part
    for whole in {url, urllib.parse.quote(url, safe=":/?#[]@!$&'()*+,;=%")} - {""}:
        text = text.replace(whole, hidden(url))
    text = re.sub(r"\w+://[^\s]+?(?=['\")\]>,]*(?:\s|$))", lambda found: hidden(found[0]),
                  " ".join(text.split()))
    for secret in _secrets(url):
        text = text.replace(secret, "...")
    if len(text) > 300:
        text = text[:300].rpartition(" ")[0] + " ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def chain_of(error):
    """Returns the error and its causes, the error first."""
    chain = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _place_of(chain, url):
    """Returns (host, HOST:PORT) of the server that did not answer."""
    for error in chain:
        host, port = getattr(error, "host", None), getattr(error, "port", None)
        if isinstance(host, str):
            break
    else:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    return host, f"{host}:{port}" if port else host


def _of_status(status):
    if status in (401, 403, 407):
        return f"the server refuses (HTTP {status}): check the credentials"
    if status in (404, 410):
        return "no such path; check the URL"
    return f"the server answers HTTP {status}; " + (
        "try again later" if status >= 500 else "check the URL")


def _of_connection(chain, url):
    """Returns the reason why no server answers. None if one does."""
    web = url.startswith("http")
    unknown = any(isinstance(one, socket.gaierror) for one in chain)
    refused = any(isinstance(one, ConnectionRefusedError) for one in chain)
    invalid = web and any(isinstance(one, ValueError) for one in chain)  # the text may be a password
    if (unknown or refused or invalid) and _is_ambiguous(url):  # its host may be part of a password
        return "is no valid URL; check it" + (
            "" if "/" in hidden(url).partition("://")[2] else
            ": in a user name or password write / as %2F, ? as %3F, # as %23 and @ as %40")
    if unknown:
        return f"host {_place_of(chain, url)[0]} is not known; check the URL"
    if refused:
        return f"nothing answers at {_place_of(chain, url)[1]} (connection refused)"
    return "is no valid URL; check it" if invalid else None


def why(error, url):
    """Returns the reason why a URL cannot be listed, without secrets."""
    chain = chain_of(error)
    web = url.startswith("http")
    statuses = [one.status for one in chain
                if isinstance(getattr(one, "status", None), int) and one.status > 0]
    if isinstance(error, Refused):
        return str(error)
    if isinstance(error, Empty):
        return "holds no file; check the URL" + (
            ", and that the server lists a folder as a page of links" if web else "")
    if any(type(one).__name__ == "TooManyRedirects" for one in chain):
        return "the server redirects without end; check the URL"
    if statuses:
        return _of_status(statuses[0])
    connection = _of_connection(chain, url)
    if connection is not None:
        return connection
    if any(isinstance(one, TimeoutError) for one in chain):
        return "the server does not answer in time; try again later, or copy it and name the copy"
    if web and isinstance(error, FileNotFoundError) and len(chain) > 1:
        error = chain[1]  # fsspec raises FileNotFoundError for any failure
    if isinstance(error, FileNotFoundError):
        return "no such path; check the URL"
    if isinstance(error, PermissionError):
        return f"access is refused ({reason(error, url)}); check the credentials"
    if str(error).startswith("Protocol not known"):
        return (f"{url.partition('://')[0]}:// is not known; use one of {_SCHEMES}, or another "
                "scheme of fsspec: fsspec.available_protocols() lists them")
    return f"cannot be listed ({reason(error, url)}); check the URL and your rights"
