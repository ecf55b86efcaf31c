"""Objects as files below one folder, for all processes of one machine.

    staging/<key>/<number>          parts, each renamed to its number once it is whole and durable
    staging/<key>/incoming-<id>     parts that are still being written
    objects/<xx>/<key>/<number>     frozen objects; <xx> spreads them over 256 folders
    bin/                            what is being deleted

A place becomes an object by one rename of its folder. Files get their names in a place under a
shared lock on its folder, and the folder moves under an exclusive one. So a part has its number
before the move, and then it is in the object, or finds that its place is gone: never is it renamed
into a folder that has moved already, which a rename that the kernel has begun would otherwise do.
File systems of a network do not lock folders; they are refused by the first part.
"""

from lucius_artifacts.objects.files.objects import FileObjects

__all__ = ["FileObjects"]
