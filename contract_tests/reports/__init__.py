"""What is made of a `Report`: for people, for programs, and to be shown on a page.

`json_report` is the one that can be read back, so that every other can be made of it later, on
another machine. What leaves the machine (all but `terminal`) goes through `publishing`: no paths of
the machine that made it. Everything that a service has said goes through `publishing.legible`
before people see it: it may not steer a screen or break a document.
"""
