"""Speed and quality of exactk beside other libraries; see the README of this folder."""
