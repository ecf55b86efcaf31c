# In this repository lucius-sdk is the checkout that the example is a part of.
LUCIUS_SDK ?= ../..
